// The model card, and the state of the server.

const model = { id: "", chat: true };

function cardRows(about) {
  const more = about.aerie ?? {};
  const memory = more.memory_bytes ? (more.memory_bytes / 2 ** 30).toFixed(2) + " GiB" : "";
  return [["Name", about.id], ["Architecture", more.architecture],
          ["Parameters", more.parameters && (more.parameters >= 1e9 ? (more.parameters / 1e9).toFixed(1) + " billion" : (more.parameters / 1e6).toFixed(1) + " million")],
          ["Weights", more.weights], ["Context", about.max_model_len && plural(about.max_model_len, "token")],
          ["Device", more.device], ["Drafter", more.drafter], ["Memory", memory],
          ["Chat template", more.chat === false ? "none: it goes on with a text" : ""], ["aerie", more.version]]
    .filter(([, value]) => value);
}

async function showModel() {
  try {
    const about = (await ask("/v1/models")).data[0];
    Object.assign(model, { id: about.id, chat: about.aerie?.chat });
    watch.started = about.created;
    find("#model-name").textContent = about.id;
    document.title = about.id + " · aerie";
    for (const card of document.querySelectorAll("dl.card"))
      card.replaceChildren(...cardRows(about).map(([name, value]) =>
        make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
    const drafts = about.aerie?.can_draft !== false;
    find("#draft").disabled = !drafts;
    find("#draft").closest("label").title = drafts ? kDraftTitle : "The server was started without a drafter";
    showDefaults(about);
    watch.set("ready");
  } catch (error) {
    watch.set(error.status === 401 ? "needs a key" : error.status === 503 ? "not ready" : "unreachable");
    if (error.status === 401) openSettings("The server asks for its API key.");
  }
}

const kDraftTitle = find("#draft").closest("label").title;

// An empty field of the settings shows what is taken then.
function showDefaults(about) {
  for (const [name, value] of Object.entries(about.aerie?.sampling ?? {})) {
    const field = find("#" + name.replaceAll("_", "-"));
    if (field) field.placeholder = value === kOff[name] ? `${value}, off` : String(value);
  }
  if (about.max_model_len) find("#max-tokens").placeholder = "context";
}

// Values that leave the distribution as it is.
const kOff = { top_p: 1, top_k: 0, min_p: 0, repetition_penalty: 1, frequency_penalty: 0, presence_penalty: 0 };

const kLookEvery = 5000, kLookLeast = 3000, kLookSeldom = 30000;  // milliseconds

// Asks the server how it is, while somebody looks at the page; the longer it does not reply, the less often.
const watch = {
  state: "",
  started: 0,  // when the server was started, by its own clock
  wait: kLookEvery,
  timer: 0,

  begin() {
    showModel();
    this.plan();
    document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(this.timer) : this.look()));
    addEventListener("online", () => this.look());
  },

  plan(wait = this.wait) {
    clearTimeout(this.timer);
    if (!document.hidden) this.timer = setTimeout(() => this.look(), wait);
  },

  // A request has failed: the server may have gone.
  soon() {
    this.plan(100);
  },

  async look() {
    clearTimeout(this.timer);
    const state = await fetch("/health", { cache: "no-store", signal: AbortSignal.timeout(kLookLeast) })
      .then((reply) => reply.json()).catch(() => null);
    if (state?.status === "ok") {
      this.wait = kLookEvery;
      if (this.state !== "ready" || state.started !== this.started) await this.again(state);
    } else if (state?.status === "loading") {
      this.wait = kLookLeast;
      this.set("loading");
      find("#state").textContent = state.stage;
    } else {
      this.wait = this.state === "ready" ? kLookLeast : Math.min(kLookSeldom, this.wait * 1.5);
      this.set(state?.status === "draining" ? "is ending" : state ? "not ready" : "unreachable");
    }
    this.plan();
  },

  // The server is there again, or another one. A key is not asked for twice.
  async again(state) {
    if (this.state !== "needs a key" || state.started !== this.started) await showModel();
    this.started = state.started;
  },

  set(state) {
    if (state !== this.state && this.state) say(state === "ready" ? "The server is ready." : "The server: " + state + ".");
    this.state = state;
    this.show();
  },

  // While the page waits for an answer, the server is more than ready.
  show() {
    if (!this.state) return;
    const isReady = this.state === "ready", isAnswering = isReady && Boolean(chat.running || race.running);
    find("#model").dataset.state = isAnswering ? "answering" : isReady ? "ready" : "failed";
    find("#state").textContent = isAnswering ? "answering" : this.state;
    if (!isReady && !model.id) find("#model-name").textContent = "";
  },
};

