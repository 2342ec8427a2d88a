// An answer on the page. It is drawn once per frame, however fast its parts arrive.

const kDrawing = 6;   // milliseconds of drawing per frame
const kBetween = 28;  // least milliseconds from one drawing to the next

const frames = {
  views: new Set(),
  isWaiting: false,
  last: 0,
  ask(view) {
    this.views.add(view);
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame((now) => this.draw(now));
  },
  draw(now) {
    if (now - this.last < kBetween) return requestAnimationFrame((now) => this.draw(now));
    this.last = now;
    this.isWaiting = false;
    const views = [...this.views], share = kDrawing / views.length;
    this.views.clear();
    for (const view of views) if (!view.draw(share)) this.ask(view);
    scroll.follow();
  },
};

// The log stays at its end until the user scrolls up, by whatever means.
const scroll = {
  log: find("#log"),
  button: find("#newest"),
  isAtEnd: true,
  touched: -Infinity,  // time of the newest input that can scroll
  begin() {
    for (const kind of ["wheel", "touchmove", "pointerdown", "pointermove", "keydown"]) {
      const note = ({ type, buttons }) => (type !== "pointermove" || buttons) && (this.touched = performance.now());
      this.log.addEventListener(kind, note, { passive: true });
    }
    this.log.addEventListener("scroll", () => this.look(), { passive: true });
    this.button.addEventListener("click", () => this.toEnd());
    const sizes = new ResizeObserver(() => this.follow());
    sizes.observe(this.log);
    sizes.observe(find("#turns"));  // blocks that come into view get their real height
  },
  look() {
    const { scrollTop, scrollHeight, clientHeight } = this.log;
    const isNear = scrollHeight - scrollTop - clientHeight < 60;
    // Blocks that change their height move the text, too; the log must follow then.
    if (isNear || performance.now() - this.touched < 700) this.isAtEnd = isNear;
    else this.follow();
    this.button.hidden = this.isAtEnd;
    this.log.classList.toggle("following", this.isAtEnd);
  },
  follow() {
    if (this.isAtEnd) this.log.scrollTop = 1e9;
  },
  toEnd() {
    this.isAtEnd = true;
    this.button.hidden = true;
    this.follow();
  },
};

// Text for screen readers: each block of an answer once it is complete, and events.
function say(text) {
  const said = find("#said");
  said.append(make("p", { textContent: text }));
  while (said.childElementCount > 3) said.firstChild.remove();
}

const inSeconds = (seconds) => (seconds < 90 ? Math.max(1, Math.round(seconds)) + " s" : Math.round(seconds / 60) + " min");

// What the model thinks before it answers: folded until the user opens it.
class ThoughtView {
  constructor(seconds) {
    this.summary = make("summary");
    this.body = make("div", { className: "markdown" });
    this.node = make("details", { className: "thought" }, this.summary, this.body);
    this.seconds = seconds;  // undefined: not known, or it still thinks
    this.began = performance.now();
    this.isOver = false;
  }

  end(isKept) {
    this.isOver = true;
    if (!isKept) this.seconds = (performance.now() - this.began) / 1000;
  }

  draw() {
    const took = this.isOver ? this.seconds : (performance.now() - this.began) / 1000;
    const title = this.isOver ? (took === undefined ? "Thought" : "Thought for " + inSeconds(took))
                              : "Thinking …" + (took < 1 ? "" : " " + inSeconds(took));
    if (this.summary.textContent !== title) this.summary.textContent = title;
  }
}

// `kept`: the answer was made before, and is shown again. `thinks`: it begins within a thought. `thinking`: how long its
// thoughts took, in seconds.
class AnswerView {
  constructor(onDrawn, { kept = false, thinks = false, thinking = [] } = {}) {
    this.body = make("div", { className: "body" });
    this.notes = make("div", { className: "notes" });
    this.foot = make("div", { className: "foot" });
    this.node = make("article", { className: "answer" }, this.body, this.notes, this.foot);
    this.node.setAttribute("aria-label", "Answer");
    this.source = new Source();
    this.thoughts = new Thoughts(thinks, (...part) => this.take(this.source, ...part), () => this.closePart());
    this.reasoning = null;  // thoughts that came apart from the answer
    this.parts = [];        // all that is shown: {markdown, thought, isDone}
    this.took = thinking;
    this.isKept = kept;
    this.isOver = false;
    this.announced = "";
    this.onDrawn = onDrawn;
  }

  add(text, depth) {
    if (this.reasoning?.isOpen) this.closeReasoning();
    this.source.add(text, depth);
    this.thoughts.put(this.source.text);
    frames.ask(this);
  }

  // Text of a server that parts thoughts from the answer.
  think(text) {
    this.reasoning ??= { source: new Source(), isOpen: true };
    const { source } = this.reasoning;
    source.add(text, 0);
    this.take(source, 0, source.text.length, true);
    frames.ask(this);
  }

  closeReasoning() {
    this.reasoning.isOpen = false;
    this.closePart();
  }

  take(source, from, to, isThought) {
    const last = this.parts.at(-1);
    if (last && !last.markdown.isOver) return (last.markdown.to = to);
    const number = this.parts.filter(({ thought }) => thought).length;
    const thought = isThought ? new ThoughtView(this.took[number]) : null;
    const root = thought?.body ?? make("div", { className: "markdown" });
    this.body.append(thought?.node ?? root);
    if (thought && !this.isKept) say("The model thinks.");
    const onClosed = this.isKept || isThought ? undefined : (block) => say(block.textContent);
    const markdown = new Markdown(source, root, from, onClosed);
    markdown.to = to;
    this.parts.push({ markdown, thought, isDone: false });
  }

  closePart() {
    const { markdown, thought } = this.parts.at(-1);
    markdown.isOver = true;
    thought?.end(this.isKept);
  }

  // How long it thought, each time.
  thinking() {
    return this.parts.filter(({ thought }) => thought).map(({ thought }) => thought.seconds);
  }

  end() {
    if (this.reasoning?.isOpen) this.closeReasoning();
    this.thoughts.put(this.source.text, true);
    this.isOver = true;
    frames.ask(this);
  }

  draw(milliseconds) {
    const until = performance.now() + milliseconds;
    this.drawFoot();
    for (const part of this.parts) {
      if (part.isDone) continue;
      part.thought?.draw();
      if (!part.markdown.draw(until - performance.now())) return false;
      part.isDone = part.markdown.isOver;
    }
    if (this.isOver) this.onDrawn();
    return true;
  }

  // Figures of the answer while it is made.
  tell(text) {
    this.announced = text;
    frames.ask(this);
  }

  drawFoot() {
    if (this.isOver || this.announced === this.foot.textContent) return;
    this.live ??= make("span", { className: "numbers" });
    this.live.textContent = this.announced;
    if (!this.live.isConnected) this.foot.replaceChildren(this.live);
  }

  note(text, ...buttons) {
    this.notes.append(make("p", { className: "note" }, text, ...buttons));
  }
}

async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";  // such as for a page by plain HTTP
  }
  setTimeout(() => (button.textContent = label), 1500);
}
