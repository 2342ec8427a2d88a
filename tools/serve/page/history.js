// The history: talks in the browser's own database, for this origin alone. Where the browser keeps none, the page works
// without.

const kTalks = "talks", kTitles = "titles";
const kTitleLength = 60, kWarnedName = "aerie-warned";

const settled = (request) =>
  new Promise((done, fail) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });

const archive = {
  base: null,   // a promise
  last: null,   // the newest change: changes come one after the other
  isRefused: false,

  open() {
    return (this.base ??= (async () => {
      const request = indexedDB.open("aerie", 1);
      request.onupgradeneeded = () => {
        for (const name of [kTalks, kTitles]) request.result.createObjectStore(name, { keyPath: "id" });
      };
      const base = await settled(request);
      base.onversionchange = () => base.close();
      return base;
    })());
  },

  // Runs work(talks, titles, done) within one transaction, and returns what `done` was given.
  async run(mode, work) {
    const base = await this.open();
    return new Promise((done, fail) => {
      const change = base.transaction([kTalks, kTitles], mode);
      let result;
      change.oncomplete = () => done(result);
      change.onabort = () => fail(change.error ?? new Error("the history was not changed"));
      work(change.objectStore(kTalks), change.objectStore(kTitles), (value) => (result = value));
    });
  },

  // The titles of all talks, the newest first.
  async list() {
    const titles = await this.run("readonly", (talks, titles, done) => {
      titles.getAll().onsuccess = ({ target }) => done(target.result);
    });
    return titles.sort((a, b) => b.time - a.time);
  },

  get(id) {
    return this.run("readonly", (talks, titles, done) => {
      talks.get(id).onsuccess = ({ target }) => done(target.result);
    });
  },

  put(talk) {
    return this.run("readwrite", (talks, titles) => putTalk(talks, titles, talk));
  },

  remove(id) {
    return this.run("readwrite", (talks, titles) => {
      for (const store of [talks, titles]) store.delete(id);
    });
  },

  clear() {
    return this.run("readwrite", (talks, titles) => {
      for (const store of [talks, titles]) store.clear();
    });
  },
};

function putTalk(talks, titles, talk) {
  talks.put(talk);
  titles.put({ id: talk.id, title: talk.title, time: talk.time, count: talk.turns.length });
}

function titleOf(turns) {
  const line = (turns[0]?.user ?? "").trim().replace(/\s+/g, " ");
  if (line.length <= kTitleLength) return line || "Empty talk";
  const cut = line.slice(0, kTitleLength), space = cut.lastIndexOf(" ");
  return (space > kTitleLength / 2 ? cut.slice(0, space) : cut) + " …";
}

// A talk has a state, a new name after each change. A tab changes a talk only if it knows its state: if another tab has
// gone on with it, this one goes on with a copy. `kept`: {id, title, states}, with the states that this tab made; the newest
// may not have come to the history before a reload.
async function keepPlain(talk, kept) {
  const state = randomName();
  kept.states.push(state);
  const isCopy = await archive.run("readwrite", (talks, titles, done) => {
    talks.get(kept.id).onsuccess = ({ target }) => {
      const there = target.result;
      const isOthers = Boolean(there) && !kept.states.includes(there.state);
      const title = kept.title || there?.title || titleOf(talk.turns);
      if (isOthers) Object.assign(kept, { id: randomName(), title: title + " (copy)" });
      putTalk(talks, titles, { ...talk, id: kept.id, state, time: Date.now(), title: kept.title || title });
      done(isOthers);
    };
  });
  kept.states = [state];
  return isCopy;
}

function tellRefusal() {
  if (archive.isRefused) return;
  archive.isRefused = true;
  if (stored(() => sessionStorage, kWarnedName) === "yes") return;
  stored(() => sessionStorage, kWarnedName, "yes");
  offer("This browser keeps no history here: a talk goes when its tab is closed.");
}

// Keeps the conversation as it is now, in this tab and in the history.
function keep() {
  const { kept } = conversation;
  const { turns, first, name } = plainTalk();
  const change = async () => {
    try {
      const isCopy = turns.length > 0 && (await keepPlain({ turns, first, name, system: settings.system, model: model.id }, kept));
      if (isCopy) offer("Another tab went on with this talk. Here it goes on as a copy.");
    } catch {
      tellRefusal();
    }
    if (conversation.kept === kept) save();
  };
  archive.last = Promise.resolve(archive.last).then(change);
  save();
  return archive.last;
}

// After a reload: what this tab could not hold, or what another tab has added meanwhile. A talk that was deleted there
// does not come back before somebody goes on with it.
async function synchronize() {
  const { kept, isCut, isElsewhere } = conversation;
  conversation.isCut = false;
  if (isCut) return keep();
  try {
    const there = await archive.get(kept.id);
    const isNewer = there && !kept.states.includes(there.state) && kept.states.length > 0;
    if (there && (isElsewhere || isNewer) && conversation.kept === kept && !chat.running) showTalk(talkOf(there));
    else if (!there && !kept.states.length && conversation.turns.length) await keep();
  } catch {
    tellRefusal();
  }
}

const talkOf = ({ turns, first, name, title, id, state }) => ({ turns, first, name, kept: { id, title, states: [state] } });
