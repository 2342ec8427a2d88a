// Settings, colours, keys.

const kFields = Object.fromEntries(["system", "seed", "key", ...kNumbers].map((name) => [name, "#" + name.replaceAll("_", "-")]));

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
  // Another page of this server has changed it.
  addEventListener("storage", ({ key, newValue }) => key === kThemeName && setColours(newValue ?? ""));
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
  find("#draft").checked = settings.draft;
  find("#draft").addEventListener("change", ({ target }) => {
    settings.draft = target.checked;
    save();
  });
  // Plain text is what a reader expects: shades are for who asks for them, and the choice is remembered.
  const box = find("#shade"), shade = () => (document.documentElement.dataset.shade = box.checked);
  box.checked = stored(() => localStorage, kShadeName) === "on";
  box.addEventListener("change", () => {
    stored(() => localStorage, kShadeName, box.checked ? "on" : "off");
    shade();
  });
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
beginTalks();
beginBeside();
beginRace();
watch.begin();
showView();
addEventListener("hashchange", showView);
addEventListener("keydown", onKey);
addEventListener("pagehide", () => {
  // An unfinished answer is kept as far as it has come.
  if (chat.running) {
    conversation.isCut = true;
    conversation.turns.at(-1).notes = ["The page was left before the answer was whole."];
  }
  save();
});
