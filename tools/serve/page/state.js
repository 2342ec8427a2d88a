// State that survives a reload. It stays in this tab.

const kStateName = "aerie", kThemeName = "aerie-colours";

const settings = { system: "", temperature: "", seed: "", max_tokens: "", draft: true, shade: true, key: "" };
// `first`: index of the first turn that the model still reads; there is no room for those before.
// `name`: the newest reply's name for the conversation, by which the tokens of its answers are kept.
// A turn: {user, text, runs, figures, notes}; `text` is undefined until it is answered.
const conversation = { turns: [], first: 0, name: "" };
const raceState = { prompt: "", tokens: "200", seed: "" };

// Storage may be forbidden or full: the page works without it.
function stored(storage, name, value) {
  try {
    if (value === undefined) return storage().getItem(name);
    if (value === "") storage().removeItem(name);
    else storage().setItem(name, value);
  } catch {
    // Nothing can be done, and the user need not know now.
  }
  return null;
}

function save() {
  const turns = conversation.turns.map(({ user, text, runs, figures, notes }) => ({ user, text, runs, figures, notes }));
  const kept = { settings, conversation: { ...conversation, turns }, raceState };
  stored(() => sessionStorage, kStateName, JSON.stringify(kept));
}

function restore() {
  try {
    const kept = JSON.parse(stored(() => sessionStorage, kStateName) ?? "{}");
    Object.assign(settings, kept.settings);
    Object.assign(raceState, kept.raceState);
    if (Array.isArray(kept.conversation?.turns)) Object.assign(conversation, kept.conversation);
  } catch {
    // It was written by another version of this page.
  }
}

// Options of an answer, by the settings.
function sampling() {
  const options = { provenance: true, draft: settings.draft };
  if (settings.temperature !== "") options.temperature = Number(settings.temperature);
  if (settings.max_tokens !== "") options.max_tokens = Number(settings.max_tokens);
  options.seed = settings.seed !== "" ? Number(settings.seed) : randomSeed();
  return options;
}

const withSystem = (messages) =>
  settings.system.trim() ? [{ role: "system", content: settings.system }, ...messages] : messages;
