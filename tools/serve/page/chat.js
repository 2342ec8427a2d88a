// The conversation.

const chat = {
  turns: find("#turns"),
  prompt: find("#prompt"),
  running: null,  // an AbortController
  ended: null,    // a promise: the running answer has ended
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
// because all that is left must be prefilled again. Returns whether the answer begins within a thought.
async function makeRoom(turn, signal) {
  const before = conversation.first, last = conversation.turns.indexOf(turn);
  let { count, max_model_len: context, thinks } = await tokensUntil(turn, signal);
  const least = Math.max(1, Math.min(Number(settings.max_tokens) || Infinity, context / 8));
  if (count + least <= context) return thinks;
  while (conversation.first < last && count > context / 2) {
    ++conversation.first;
    ({ count, thinks } = await tokensUntil(turn, signal));
  }
  if (conversation.first > before) showDropped(context);
  if (count < context) return thinks;
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
  const heading = make("h2", { className: "unseen", textContent: "Turn " + (conversation.turns.indexOf(turn) + 1) });
  turn.node = make("section", { className: "turn" }, heading, user);
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
  foot.replaceChildren(newButton("Copy", (event) => copyText(withoutThoughts(turn.text, turn.thinks), event.target)));
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
  watch.show();
  refreshActions();
}

// How far a long prompt has been read, and how fast since the first of these counts.
class ReadingCount {
  words(read, all) {
    this.first ??= { read, at: performance.now() };
    const seconds = (performance.now() - this.first.at) / 1000;
    const rate = seconds > 0.3 && read > this.first.read ? `, ${grouped(Math.round((read - this.first.read) / seconds))}/s` : "";
    return `Reading ${grouped(read)} of ${plural(all, "token")}${rate} …`;
  }
}

const kKeepEvery = 3000;  // milliseconds from one keeping of an unfinished answer to the next

// Handles the parts of an answer.
function follow(turn, view) {
  turn.figures = null;
  let keptAt = performance.now();
  return (part) => {
    if (part.usage && turn.figures)
      Object.assign(turn.figures, { prompt: part.usage.prompt_tokens, completion: part.usage.completion_tokens });
    for (const choice of part.choices) {
      const aerie = choice.aerie;
      const { content = "", reasoning_content: thought } = choice.delta ?? {};
      if (thought) view.think(thought);
      if (aerie?.pieces && !thought)
        for (const piece of aerie.pieces) view.add(piece.text, piece.from === "draft" ? piece.depth : 0);
      else if (content)
        view.add(content, 0);
      if (aerie?.join) conversation.name = aerie.join;
      if (aerie) {
        const { tokens, tau, tokens_per_second, reused, seed, why_hardly_drafted } = aerie;
        turn.figures = { tokens, tau, tokens_per_second, reused, seed, why_hardly_drafted };
        view.tell(figuresText(turn.figures, true));
      }
      if (choice.finish_reason) turn.finish = choice.finish_reason;
    }
    if (performance.now() - keptAt < kKeepEvery) return;
    keptAt = performance.now();
    keep();
  };
}

// Notes about an answer that ended before the model ended it.
function endNotes(turn, most) {
  if (turn.finish !== "length") return [];
  if (most && turn.figures?.completion >= most) return [`Ended after ${plural(most, "token")}, as the settings say.`];
  return ["The context is full: the answer ends here. For the next one, the oldest turns make room."];
}

function answer(turn) {
  if (!chat.running) chat.ended = makeAnswer(turn);
}

async function makeAnswer(turn) {
  const controller = new AbortController();
  setRunning(controller);
  conversation.isCut = false;
  turn.view?.node.remove();
  const view = turn.view = new AnswerView(() => finishFoot(turn));
  Object.assign(turn, { text: "", runs: [], notes: [], finish: "", thinks: false, figures: null });
  turn.node.append(view.node);
  view.node.setAttribute("aria-busy", "true");
  view.tell("Reading …");
  scroll.toEnd();
  try {
    await complete(turn, view, controller.signal);
  } catch (error) {
    if (error.name === "AbortError") turn.notes.push("Stopped.");
    else if (!conversation.isCut) await refused(error, turn);  // else the page is being left
  }
  view.node.removeAttribute("aria-busy");
  view.end();
  Object.assign(turn, { text: view.source.text, runs: view.source.runs(), thinking: view.thinking(), reasoning: view.reasoning?.source.text });
  setRunning(null);
  say(turn.notes.join(" ") || "The answer is complete.");
  keep();
}

async function endRunning() {
  chat.running?.abort();
  await chat.ended;
}

async function complete(turn, view, signal) {
  turn.thinks = view.thoughts.isThinking = Boolean(await makeRoom(turn, signal));
  const body = { ...sampling(), model: model.id }, count = new ReadingCount();
  const onRead = (read, all) => view.tell(count.words(read, all));
  const onPart = follow(turn, view);
  if (hasTemplate()) {
    // With `join`, the tokens of this conversation's answers are kept and not prefilled again.
    const join = conversation.name || true;
    await stream("/v1/chat/completions", { ...body, join, messages: messagesUntil(turn) }, signal, onPart, onRead);
  } else {
    const { max_model_len: context, count: read } = await tokensUntil(turn, signal);
    body.max_tokens ??= context - read;
    await stream("/v1/completions", { ...body, prompt: textUntil(turn) }, signal, onPart, onRead);
  }
  turn.notes = endNotes(turn, Number(settings.max_tokens));
}

async function refused(error, turn) {
  turn.notes.push(message(error) + ".");
  if (error.status === 401) openSettings("The server asks for its API key.");
  if (error.status === 404) showModel();  // another server may have come, with another model
}

function send() {
  const text = chat.prompt.value;
  if (chat.running || !/\S/.test(text)) return;
  if (chat.isEditing) conversation.turns.pop().node.remove();
  endEdit();
  find("#offer").hidden = true;
  const turn = { user: text };
  conversation.turns.push(turn);
  conversation.first = Math.min(conversation.first, conversation.turns.length - 1);
  chat.prompt.value = "";
  fit(chat.prompt);
  showTurn(turn);
  answer(turn);
  keep();
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

// Puts another conversation in the place of the shown one.
function showTalk(talk) {
  for (const turn of conversation.turns) turn.node?.remove();
  find("#dropped")?.remove();
  endEdit();
  Object.assign(conversation, emptyTalk(), talk, { isElsewhere: false });
  find("#welcome").hidden = conversation.turns.length > 0;
  showKept();
  scroll.toEnd();
  save();
}

async function newChat() {
  await endRunning();
  const before = { ...plainTalk(), kept: conversation.kept };
  showTalk(emptyTalk());
  location.hash = "#chat";
  chat.prompt.focus();
  if (before.turns.length)
    offer(archive.isRefused ? "The talk has ended." : "The talk is in the history.", "Undo", () => showTalk(before));
}

// A line above the message, with a button that does something about it.
function offer(text, label, onClick, place = find("#offer")) {
  const close = () => (place.hidden = true);
  const act = label && newButton(label, () => {
    close();
    onClick();
  });
  place.replaceChildren(make("span", { textContent: text }), ...(act ? [act] : []), newButton("Close", close));
  place.hidden = false;
  say(text);
}

// Shows the conversation after a reload. Long answers are drawn frame by frame, too.
function showKept() {
  for (const turn of conversation.turns) {
    showTurn(turn);
    if (turn.text === undefined) continue;
    turn.view = new AnswerView(() => finishFoot(turn), { kept: true, thinks: turn.thinks, thinking: turn.thinking });
    turn.node.append(turn.view.node);
    if (turn.reasoning) turn.view.think(turn.reasoning);
    const runs = turn.runs ?? [turn.text.length, 0];
    for (let i = 0, at = 0; i < runs.length; at += runs[i], i += 2)
      turn.view.add(turn.text.slice(at, at + runs[i]), runs[i + 1]);
    turn.view.end();
  }
  refreshActions();
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
  synchronize();
}
