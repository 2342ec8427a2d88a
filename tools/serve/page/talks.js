// The list of talks: open, rename, export, delete.

const talkList = find("#talks-list");

const whenOf = (time) =>
  new Date(time).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

async function showTalks() {
  const titles = await archive.list().catch(() => []);
  if (!titles.length) tellEmpty();
  else talkList.replaceChildren(...titles.map(talkRow));
  find("#delete-all").hidden = !titles.length;
  find("#delete-sure").hidden = true;
}

function tellEmpty() {
  const text = archive.isRefused ? "This browser keeps no history here." : "No talks yet. Each is kept here from its first message on.";
  talkList.replaceChildren(make("li", { className: "fine", textContent: text }));
}

function talkRow({ id, title, time, count }) {
  const name = make("span", { className: "name", textContent: title });
  const when = make("span", { className: "fine", textContent: `${whenOf(time)} · ${plural(count, "turn")}` });
  const open = make("button", { type: "button", className: "talk" }, name, when);
  open.addEventListener("click", () => openTalk(id));
  const more = make("button", { type: "button", className: "quiet square", textContent: "⋯" });
  more.setAttribute("aria-label", "More about " + title);
  more.setAttribute("aria-expanded", false);
  const acts = make("div", { className: "acts", hidden: true },
    newButton("Rename", () => renameTalk(id, title, row)), newButton("JSON", () => exportTalk(id, "json")),
    newButton("Markdown", () => exportTalk(id, "md")), newButton("Delete", () => deleteTalk(id, title)));
  more.addEventListener("click", () => {
    acts.hidden = !acts.hidden;
    more.setAttribute("aria-expanded", !acts.hidden);
  });
  const row = make("li", {}, open, more, acts);
  if (id === conversation.kept.id) open.setAttribute("aria-current", true);
  return row;
}

async function openTalk(id) {
  await endRunning();
  const talk = await archive.get(id);
  if (!talk) return showTalks();
  if (id !== conversation.kept.id) showTalk(talkOf(talk));
  find("#talks-dialog").close();
  location.hash = "#chat";
}

function renameTalk(id, title, row) {
  const field = make("input", { value: title, maxLength: 200 });
  field.setAttribute("aria-label", "Title");
  row.replaceChildren(field);
  field.select();
  let isOver = false;
  const end = async (isKept) => {
    if (isOver) return;
    isOver = true;
    const name = field.value.trim();
    const talk = isKept && name && name !== title ? await archive.get(id) : null;
    if (talk) await archive.put({ ...talk, title: name });
    if (talk && id === conversation.kept.id) conversation.kept.title = name;
    save();
    showTalks();
  };
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();  // neither closes the dialog
    end(event.key === "Enter");
  });
  field.addEventListener("blur", () => end(true));
}

async function deleteTalk(id, title) {
  const isOpen = id === conversation.kept.id;
  if (isOpen) await endRunning();
  await archive.last;
  const talk = await archive.get(id);
  await archive.remove(id);
  if (isOpen) showTalk(emptyTalk());
  await showTalks();
  if (!talk) return;
  offer(`“${title}” is deleted.`, "Undo", async () => {
    await archive.put(talk);
    if (isOpen && !conversation.turns.length) showTalk(talkOf(talk));
    showTalks();
  }, find("#talks-offer"));
}

async function deleteAll() {
  await endRunning();
  await archive.last;
  await archive.clear();
  for (const place of ["#offer", "#talks-offer"]) find(place).hidden = true;
  showTalk(emptyTalk());
  showTalks();
  say("All talks are deleted.");
}

// The messages as the API takes them: this file can be sent to /v1/chat/completions as it is.
function messagesOf({ turns, system }) {
  const messages = system?.trim() ? [{ role: "system", content: system }] : [];
  for (const { user, text } of turns) {
    messages.push({ role: "user", content: user });
    if (text) messages.push({ role: "assistant", content: text });
  }
  return messages;
}

function markdownOf({ title, model: name, time, system, turns }) {
  const folded = (text) => `<details><summary>Thoughts</summary>\n\n${text}\n\n</details>`;
  const answerOf = ({ text, thinks, reasoning }) =>
    [...(reasoning ? [folded(reasoning.trim())] : []),
     ...partsOf(text, thinks).map((part) => (part.isThought ? folded(part.text) : part.text))].join("\n\n");
  const parts = [`# ${title}`, `${name ? name + ", " : ""}${new Date(time).toISOString().slice(0, 10)}`];
  if (system?.trim()) parts.push("## System", system.trim());
  for (const turn of turns) {
    parts.push("## You", turn.user.trim());
    if (turn.text || turn.reasoning) parts.push("## Answer", answerOf(turn));
  }
  return parts.join("\n\n") + "\n";
}

async function exportTalk(id, kind) {
  await archive.last;
  const talk = await archive.get(id);
  if (!talk) return;
  const text = kind === "json" ? JSON.stringify({ model: talk.model, messages: messagesOf(talk) }, null, 2) + "\n" : markdownOf(talk);
  const name = talk.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 50) || "talk";
  const href = URL.createObjectURL(new Blob([text], { type: kind === "json" ? "application/json" : "text/markdown" }));
  make("a", { href, download: `${name}.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

function beginTalks() {
  find("#talks").addEventListener("click", () => {
    find("#talks-offer").hidden = true;
    find("#talks-dialog").showModal();
    showTalks();
  });
  const sure = (isAsked) => {
    find("#delete-all").hidden = isAsked;
    find("#delete-sure").hidden = !isAsked;
    find(isAsked ? "#delete-keep" : "#delete-all").focus();
  };
  find("#delete-all").addEventListener("click", () => sure(true));
  find("#delete-keep").addEventListener("click", () => sure(false));
  find("#delete-yes").addEventListener("click", deleteAll);
}
