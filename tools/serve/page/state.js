// State that survives a reload. The settings and the key stay in this tab; talks are kept in the history, too.

const kBesideAddress = "/?beside";
const isBeside = location.pathname + location.search === kBesideAddress;  // see beside.js
const kStateName = isBeside ? "aerie-beside" : "aerie", kThemeName = "aerie-colours", kShadeName = "aerie-shade";

const settings = { system: "", temperature: "", top_p: "", top_k: "", min_p: "", repetition_penalty: "", frequency_penalty: "",
                   presence_penalty: "", seed: "", max_tokens: "", draft: true, key: "" };
// Members of a request that are numbers, with the same names in the settings.
const kNumbers = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "max_tokens"];

// `first`: index of the first turn that the model still reads; there is no room for those before.
// `name`: the newest reply's name for the conversation, by which the tokens of its answers are kept.
// `kept`: by what the history knows it, see history.js.
// A turn: {user, text, runs, figures, notes, thinks, thinking, reasoning}; `text` is undefined until it is answered.
const conversation = emptyTalk();
const raceState = { prompt: "", tokens: "200", seed: "" };

function emptyTalk() {
  return { turns: [], first: 0, name: "", isCut: false, kept: { id: randomName(), title: "", states: [] } };
}

// Storage may be forbidden or full: the page works without it. Returns false if it does not take the value.
function stored(storage, name, value) {
  try {
    if (value === undefined) return storage().getItem(name);
    if (value === "") storage().removeItem(name);
    else storage().setItem(name, value);
    return true;
  } catch {
    return value === undefined ? null : false;
  }
}

// A turn without what shows it. The answer that is being made has come as far as it is shown.
function plainTurn({ user, text, runs, figures, notes, thinks, thinking, reasoning, view }) {
  if (view && !view.isOver) {
    ({ text } = view.source);
    [runs, thinking, reasoning] = [view.source.runs(), view.thinking(), view.reasoning?.source.text];
  }
  return { user, text, runs, figures, notes, thinks, thinking, reasoning };
}

// The conversation without what shows it.
const plainTalk = () => ({ ...conversation, turns: conversation.turns.map(plainTurn) });

function save() {
  const kept = { settings, raceState };
  const hasRoom = (talk) => stored(() => sessionStorage, kStateName, JSON.stringify({ ...kept, conversation: talk }));
  // A talk that is too long for this place is in the history.
  if (!hasRoom(plainTalk())) hasRoom({ ...conversation, turns: null });
}

function restore() {
  try {
    const kept = JSON.parse(stored(() => sessionStorage, kStateName) ?? "{}");
    Object.assign(settings, kept.settings);
    Object.assign(raceState, kept.raceState);
    const talk = kept.conversation;
    if (talk) Object.assign(conversation, talk, { turns: talk.turns ?? [], isElsewhere: !talk.turns });
  } catch {
    // It was written by another version of this page.
  }
}

// Options of an answer, by the settings.
function sampling() {
  const options = { provenance: true, draft: settings.draft };
  for (const name of kNumbers) if (settings[name] !== "") options[name] = Number(settings[name]);
  options.seed = settings.seed !== "" ? Number(settings.seed) : randomSeed();
  return options;
}

const withSystem = (messages) =>
  settings.system.trim() ? [{ role: "system", content: settings.system }, ...messages] : messages;
