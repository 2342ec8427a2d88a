// Settings, the model card, colours, keys.

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
  const state = find("#model");
  try {
    const about = (await ask("/v1/models")).data[0];
    Object.assign(model, { id: about.id, chat: about.aerie?.chat });
    find("#model-name").textContent = about.id;
    document.title = about.id + " · aerie";
    for (const card of document.querySelectorAll("dl.card"))
      card.replaceChildren(...cardRows(about).map(([name, value]) =>
        make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
    const drafts = about.aerie?.can_draft !== false;
    find("#draft").disabled = !drafts;
    if (!drafts) find("#draft").closest("label").title = "The server was started without a drafter";
    state.dataset.state = "ready";
  } catch (error) {
    find("#model-name").textContent = error.status === 401 ? "needs a key" : "not reached";
    state.dataset.state = "failed";
    if (error.status === 401) openSettings("The server asks for its API key.");
  }
}

const kFields = { system: "#system", temperature: "#temperature", seed: "#seed", max_tokens: "#max-tokens", key: "#key" };

function openSettings(reason) {
  const dialog = find("#settings-dialog");
  if (!dialog.open) dialog.showModal();
  if (!reason) return;
  say(reason);
  find("#key").focus();
}

// An invalid value leaves the setting as it was.
function readSetting(name, field) {
  if (field.checkValidity() && !field.validity.badInput) settings[name] = field.value;
  field.setAttribute("aria-invalid", !field.checkValidity());
  save();
  if (name === "key") showModel();
}

function setColours(colours) {
  if (colours) document.documentElement.dataset.colours = colours;
  else delete document.documentElement.dataset.colours;
  for (const radio of document.querySelectorAll("[name=colours]")) radio.checked = radio.value === colours;
  find("#theme use").setAttribute("href", isDark() ? "#icon-sun" : "#icon-moon");
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.colours ?? (systemIsDark.matches ? "dark" : "light")) === "dark";

function chooseColours(colours) {
  stored(() => localStorage, kThemeName, colours);
  setColours(colours);
}

function beginColours() {
  const kept = stored(() => localStorage, kThemeName);
  setColours(["light", "dark"].includes(kept) ? kept : "");
  systemIsDark.addEventListener("change", () => setColours(document.documentElement.dataset.colours ?? ""));
  find("#theme").addEventListener("click", () => chooseColours(isDark() ? "light" : "dark"));
  for (const radio of document.querySelectorAll("[name=colours]"))
    radio.addEventListener("change", () => chooseColours(radio.value));
}

function beginSettings() {
  for (const [name, selector] of Object.entries(kFields)) {
    const field = find(selector);
    field.value = settings[name];
    field.addEventListener("change", () => readSetting(name, field));
  }
  const shade = () => (document.documentElement.dataset.shade = settings.shade);
  for (const name of ["shade", "draft"]) {
    const box = find("#" + name);
    box.checked = settings[name];
    box.addEventListener("change", () => {
      settings[name] = box.checked;
      shade();
      save();
    });
  }
  shade();
  find("#settings").addEventListener("click", () => openSettings());
  find("#model").addEventListener("click", () => find("#model-dialog").showModal());
  for (const dialog of document.querySelectorAll("dialog")) {
    // A click beside the dialog closes it; Enter in a field does, too.
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
}

function showView() {
  const name = location.hash === "#race" ? "race" : "chat";
  for (const view of ["chat", "race"]) {
    find(`#${view}-view`).hidden = view !== name;
    const link = find(`nav [href="#${view}"]`);
    if (view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const area = find(name === "race" ? "#race-prompt" : "#prompt");
  fit(area);
  if (matchMedia("(hover: hover)").matches) area.focus();  // a phone would show its keyboard
}

function onKey(event) {
  if (document.querySelector("dialog[open]") || event.isComposing) return;
  if (event.key === "Escape") {
    if (chat.running) chat.running.abort();
    else if (race.running) race.running.abort();
    else if (chat.isEditing) find("#editing button").click();
  }
  const area = event.target;
  if (event.key !== "Enter" || event.shiftKey || area.tagName !== "TEXTAREA") return;
  event.preventDefault();
  area.form.requestSubmit();
}

restore();
beginColours();
beginSettings();
beginChat();
beginRace();
showModel();
showView();
addEventListener("hashchange", showView);
addEventListener("keydown", onKey);
addEventListener("pagehide", () => {
  // An unfinished answer is kept as far as it has come.
  const turn = conversation.turns.at(-1);
  if (chat.running && turn?.view) {
    const { source } = turn.view.markdown;
    Object.assign(turn, { text: source.text, runs: source.runs(), notes: ["The page was left before the answer was whole."] });
  }
  save();
});
