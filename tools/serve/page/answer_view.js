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

class AnswerView {
  constructor(onDrawn = () => {}, isQuiet = false) {
    this.body = make("div", { className: "markdown" });
    this.notes = make("div", { className: "notes" });
    this.foot = make("div", { className: "foot" });
    this.node = make("article", { className: "answer" }, this.body, this.notes, this.foot);
    this.node.setAttribute("aria-label", "Answer");
    this.markdown = new Markdown(this.body, isQuiet ? undefined : (block) => say(block.textContent));
    this.isOver = false;
    this.onDrawn = onDrawn;
  }

  add(text, depth) {
    this.markdown.add(text, depth);
    frames.ask(this);
  }

  end() {
    this.isOver = true;
    frames.ask(this);
  }

  draw(milliseconds) {
    if (!this.markdown.draw(milliseconds)) return false;
    if (this.isOver) {
      this.markdown.end();
      this.onDrawn();
    }
    return true;
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
