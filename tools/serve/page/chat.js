// The conversation.

const chat = {
  turns: find("#turns"),
  prompt: find("#prompt"),
  running: null,  // an AbortController
  isEditing: false,
};

const newButton = (label, onClick) => {
  const button = make("button", { type: "button", className: "link", textContent: label });
  button.addEventListener("click", onClick);
  return button;
};

// The messages that the model reads: from the first turn that has room to this one.
function messagesUntil(turn) {
  const messages = [];
  for (const each of conversation.turns.slice(conversation.first)) {
    messages.push({ role: "user", content: each.user });
    if (each === turn) break;
    messages.push({ role: "assistant", content: each.text ?? "" });
  }
  return withSystem(messages);
}

// A model without a chat template continues a text.
const textUntil = (turn) =>
  messagesUntil(turn).map((each) => each.content).join("");

const hasTemplate = () => model.chat !== false;

async function tokensUntil(turn, signal) {
  const body = hasTemplate() ? { messages: messagesUntil(turn) } : { content: textUntil(turn), add_special: true };
  return ask("/tokenize", body, signal);
}

// Drops the oldest turns if an answer would have no room. Half of the context is freed at once,
// because all that is left must be prefilled again.
async function makeRoom(turn, signal) {
  const before = conversation.first, last = conversation.turns.indexOf(turn);
  let { count, max_model_len: context } = await tokensUntil(turn, signal);
  const least = Math.max(1, Math.min(Number(settings.max_tokens) || Infinity, context / 8));
  if (count + least <= context) return;
  while (conversation.first < last && count > context / 2) {
    ++conversation.first;
    ({ count } = await tokensUntil(turn, signal));
  }
  if (conversation.first > before) showDropped(context);
  if (count < context) return;
  throw new Error(`this message is too long: it makes ${plural(count, "token")}, and the model reads ` +
                  `${grouped(context)} with its answer. Edit it to go on`);
}

function showDropped(context) {
  find("#dropped")?.remove();
  conversation.turns.forEach((turn, i) => turn.node.classList.toggle("dropped", i < conversation.first));
  const first = conversation.turns[conversation.first];
  if (!conversation.first || !first) return;
  const room = context ? `of ${plural(context, "token")} ` : "";
  const text = `The context ${room}is full: the model does not read the ` +
    (conversation.first === 1 ? "oldest turn" : `oldest ${conversation.first} turns`) + " above any more.";
  first.node.before(make("p", { id: "dropped", textContent: text }));
  say(text);
}

function showTurn(turn) {
  turn.node?.remove();
  const user = make("div", { className: "user", textContent: turn.user });
  user.setAttribute("role", "group");
  user.setAttribute("aria-label", "You");
  turn.node = make("section", { className: "turn" }, user);
  chat.turns.append(turn.node);
  find("#welcome").hidden = true;
  refreshActions();
}

// The last question can be edited, and the last answer can be made again.
function refreshActions() {
  for (const node of document.querySelectorAll(".last")) {
    if (node.contains(document.activeElement)) chat.prompt.focus();
    node.remove();
  }
  const turn = conversation.turns.at(-1);
  if (!turn?.node || chat.running) return;
  const edit = newButton("Edit", beginEdit);
  edit.classList.add("last");
  find(".user", turn.node).after(make("div", { className: "actions last" }, edit));
  if (!turn.view) return;
  const retry = newButton("Retry", () => answer(turn));
  retry.classList.add("last", "retry");
  turn.view.foot.prepend(retry);
}

function figuresText(figures, isLive) {
  const parts = [];
  if (figures.tokens_per_second) parts.push(roughly(figures.tokens_per_second) + " tokens/s");
  if (figures.tau > 1) parts.push("τ " + figures.tau.toFixed(2));
  parts.push(plural(figures.tokens, "token"));
  if (isLive) return parts.join(" · ");
  if (figures.reused) parts.push(grouped(figures.reused) + " of " + grouped(figures.prompt) + " read before");
  if (figures.seed !== undefined) parts.push("seed " + figures.seed);
  return parts.join(" · ");
}

function finishFoot(turn) {
  const { foot } = turn.view;
  foot.replaceChildren(newButton("Copy", (event) => copyText(turn.text, event.target)));
  if (turn.figures) foot.append(make("span", { className: "numbers", textContent: figuresText(turn.figures, false) }));
  for (const note of turn.notes ?? []) turn.view.note(note);
  // Once is enough: it is about the machine and the kind of text, not about this answer.
  const first = conversation.turns.find(({ figures }) => figures?.why_hardly_drafted);
  if (turn === first) turn.view.note(sentence(turn.figures.why_hardly_drafted));
  refreshActions();
}

function setRunning(controller) {
  chat.running = controller;
  const [shown, hidden] = controller ? [find("#stop"), find("#send")] : [find("#send"), find("#stop")];
  shown.hidden = false;
  if (document.activeElement === hidden) shown.focus();
  hidden.hidden = true;
  refreshActions();
}

const live = find("#figures");

const readingText = (read, all) => `Reading ${grouped(read)} of ${plural(all, "token")} …`;
const showReading = (read, all) => (live.textContent = readingText(read, all));

// Handles the parts of an answer.
function follow(turn, view) {
  turn.figures = null;
  return (part) => {
    if (part.usage && turn.figures)
      Object.assign(turn.figures, { prompt: part.usage.prompt_tokens, completion: part.usage.completion_tokens });
    for (const choice of part.choices) {
      const aerie = choice.aerie;
      for (const piece of aerie?.pieces ?? []) view.add(piece.text, piece.from === "draft" ? piece.depth : 0);
      if (aerie?.join) conversation.name = aerie.join;
      if (aerie) {
        const { tokens, tau, tokens_per_second, reused, seed, why_hardly_drafted } = aerie;
        turn.figures = { tokens, tau, tokens_per_second, reused, seed, why_hardly_drafted };
        live.textContent = figuresText(turn.figures, true);
      }
      if (choice.finish_reason) turn.finish = choice.finish_reason;
    }
  };
}

// Notes about an answer that ended before the model ended it.
function endNotes(turn, most) {
  if (turn.finish !== "length") return [];
  if (most && turn.figures?.completion >= most) return [`Ended after ${plural(most, "token")}, as the settings say.`];
  return ["The context is full: the answer ends here. For the next one, the oldest turns make room."];
}

async function answer(turn) {
  if (chat.running) return;
  const controller = new AbortController();
  setRunning(controller);
  turn.view?.node.remove();
  const view = turn.view = new AnswerView(() => finishFoot(turn));
  Object.assign(turn, { text: "", notes: [], finish: "" });
  turn.node.append(view.node);
  view.node.setAttribute("aria-busy", "true");
  live.textContent = "Reading …";
  scroll.toEnd();
  try {
    await complete(turn, view, controller.signal);
  } catch (error) {
    if (error.name === "AbortError") turn.notes.push("Stopped.");
    else await refused(error, turn);
  }
  view.node.removeAttribute("aria-busy");
  Object.assign(turn, { text: view.markdown.source.text, runs: view.markdown.source.runs() });
  setRunning(null);
  live.textContent = turn.figures ? figuresText(turn.figures, true) : "";
  view.end();
  say(turn.notes.join(" ") || "The answer is complete.");
  save();
}

async function complete(turn, view, signal) {
  await makeRoom(turn, signal);
  const body = { ...sampling(), model: model.id };
  const onPart = follow(turn, view);
  if (hasTemplate()) {
    // With `join`, the tokens of this conversation's answers are kept and not prefilled again.
    const join = conversation.name || true;
    await stream("/v1/chat/completions", { ...body, join, messages: messagesUntil(turn) }, signal, onPart, showReading);
  } else {
    const { max_model_len: context, count } = await tokensUntil(turn, signal);
    body.max_tokens ??= context - count;
    await stream("/v1/completions", { ...body, prompt: textUntil(turn) }, signal, onPart, showReading);
  }
  turn.notes = endNotes(turn, Number(settings.max_tokens));
}

async function refused(error, turn) {
  turn.notes.push(message(error) + ".");
  if (error.status === 401) openSettings("The server asks for its API key.");
}

function send() {
  const text = chat.prompt.value;
  if (chat.running || !/\S/.test(text)) return;
  if (chat.isEditing) conversation.turns.pop().node.remove();
  endEdit();
  const turn = { user: text };
  conversation.turns.push(turn);
  conversation.first = Math.min(conversation.first, conversation.turns.length - 1);
  chat.prompt.value = "";
  fit(chat.prompt);
  showTurn(turn);
  save();
  answer(turn);
}

function beginEdit() {
  const turn = conversation.turns.at(-1);
  if (!turn || chat.running) return;
  chat.isEditing = true;
  find("#editing").hidden = false;
  turn.node.classList.add("edited");
  chat.prompt.value = turn.user;
  fit(chat.prompt);
  chat.prompt.focus();
}

function endEdit() {
  chat.isEditing = false;
  find("#editing").hidden = true;
  find(".edited")?.classList.remove("edited");
}

function newChat() {
  chat.running?.abort();
  for (const turn of conversation.turns) turn.node.remove();
  Object.assign(conversation, { turns: [], first: 0, name: "" });
  find("#dropped")?.remove();
  find("#welcome").hidden = false;
  live.textContent = "";
  endEdit();
  save();
  location.hash = "#chat";
  chat.prompt.focus();
}

// Shows the conversation after a reload. Long answers are drawn frame by frame, too.
function showKept() {
  for (const turn of conversation.turns) {
    showTurn(turn);
    if (turn.text === undefined) continue;
    turn.view = new AnswerView(() => finishFoot(turn), true);
    turn.node.append(turn.view.node);
    const runs = turn.runs ?? [turn.text.length, 0];
    for (let i = 0, at = 0; i < runs.length; at += runs[i], i += 2)
      turn.view.add(turn.text.slice(at, at + runs[i]), runs[i + 1]);
    turn.view.end();
  }
  showDropped();
}

// Makes the area as high as its text, up to a limit in the style.
function fit(area) {
  area.style.height = "auto";
  area.style.height = area.scrollHeight + 2 + "px";
}

function beginChat() {
  find("#composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  find("#stop").addEventListener("click", () => {
    chat.running?.abort();
    chat.prompt.focus();
  });
  find("#editing button").addEventListener("click", () => {
    chat.prompt.value = "";
    fit(chat.prompt);
    endEdit();
    chat.prompt.focus();
  });
  find("#new").addEventListener("click", newChat);
  chat.prompt.addEventListener("input", () => fit(chat.prompt));
  chat.prompt.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" || chat.prompt.value || chat.isEditing || !conversation.turns.length) return;
    event.preventDefault();
    beginEdit();
  });
  scroll.begin();
  showKept();
}
