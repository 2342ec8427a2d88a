// Markdown that is drawn while it arrives: a block is drawn again while it grows, and left alone
// once the next one has begun. Blocks are kept small enough for that, so a long answer costs no
// more per token than a short one.

// A block that contains blocks of its own.
class Holder extends Leaf {
  constructor(tag, level, outline) {
    super(tag, kLongItem);
    Object.assign(this, { level, outline });
  }
  draw(source, tail) {
    this.node.replaceChildren();
    // It is drawn again and again, and its headings follow those before it.
    this.levelBefore ??= this.outline.level;
    this.outline.level = this.levelBefore;
    const inner = new Blocks(source, this.node, this.level + 1, this.outline);
    for (const [from, to] of this.lines) inner.line(from, to);
    if (tail) inner.line(...this.stripped(source.text.slice(...tail), ...tail));
    inner.end();
  }
  add(line, from, to) {
    super.add(line, ...this.stripped(line, from, to));
  }
}

class Quote extends Holder {
  constructor(level, outline) {
    super("blockquote", level, outline);
  }
  takes(line) {
    return kQuote.test(line);
  }
  stripped(line, from, to) {
    return [from + (kQuote.exec(line)?.[0].length ?? 0), to];
  }
}

class Item extends Holder {
  constructor(line, level, outline) {
    super("li", level, outline);
    const [, indent, mark, gap] = kItem.exec(line);
    this.width = indent.length + mark.length + Math.max(1, gap?.length ?? 0);
    this.kind = /\d/.test(mark) ? "ol" + mark.at(-1) : mark;
    this.number = parseInt(mark, 10);
    this.wasBlank = false;
    this.isFirst = true;
  }
  takes(line) {
    if (isBlank(line)) return true;
    if (/^(?: {2}|\t)/.test(line)) return true;
    return !this.wasBlank && !beginsOther(line);
  }
  add(line, from, to) {
    this.wasBlank = isBlank(line);
    super.add(line, from, to);
    this.isFirst = false;
  }
  stripped(line, from, to) {
    if (this.isFirst) return [Math.min(to, from + this.width), to];
    let i = 0;
    while (i < this.width && " \t".includes(line[i] ?? "x")) ++i;
    return [from + i, to];
  }
}

class Blocks {
  // `outline` has the level of the newest heading. onClosed is called with the element of each block that will not
  // change any more.
  constructor(source, root, level, outline, onClosed = () => {}) {
    this.source = source;
    this.root = root;
    this.level = level;
    this.outline = outline;
    this.onClosed = onClosed;
    this.open = null;
    this.list = null;
    this.passing = null;  // a block that only the unfinished line has begun
  }

  line(from, to, isCut = false) {
    this.forget();
    const line = this.source.text.slice(from, to);
    if (this.open && !this.becomesTable(line, from, to)) {
      if (this.open.takes(line)) this.open.add(line, from, to, isCut);
      else this.close();
    }
    if (!this.open && !isBlank(line)) {
      this.open = this.begun(line);
      this.place(this.open);
      this.open.add(line, from, to, isCut);
    }
    if (this.open?.isFull || (isCut && this.open && !(this.open instanceof Fence))) this.close();
  }

  begun(line) {
    const deep = this.level >= kMaxLevels;
    if (kFence.test(line)) return new Fence(line);
    if (kHeading.test(line)) return new Heading(line, this.outline);
    if (kRule.test(line)) return new Rule();
    if (kQuote.test(line) && !deep) return new Quote(this.level, this.outline);
    if (kItem.test(line) && !deep) return new Item(line, this.level, this.outline);
    return new Paragraph();
  }

  place(block) {
    if (!(block instanceof Item)) {
      this.list = null;
      return this.root.append(block.node);
    }
    const goesOn = this.list?.kind === block.kind;
    if (!goesOn || this.list.node.childElementCount >= kChunkItems) {
      const isOrdered = block.kind.startsWith("ol");
      const node = make(isOrdered ? "ol" : "ul", { className: goesOn ? "more" : "" });
      if (isOrdered && block.number !== 1) node.start = block.number;
      this.root.append(node);
      this.list = { kind: block.kind, node };
    }
    this.list.node.append(block.node);
  }

  // A table begins with a row of names and one of dashes.
  becomesTable(line, from, to) {
    const open = this.open;
    if (!(open instanceof Paragraph) || open.lines.length !== 1 || open.formula || !kDivider.test(line)) return false;
    const head = open.lines[0], cells = cellsOf(this.source, [from, to]);
    if (!line.includes("|") || !this.source.text.slice(...head).includes("|")) return false;
    if (cellsOf(this.source, head).length !== cells.length) return false;
    this.open = new Table(this.source, head, [from, to]);
    open.node.replaceWith(this.open.node);
    return true;
  }

  close() {
    if (!this.open) return;
    this.open.draw(this.source, null, false);
    if (this.open instanceof Heading) this.outline.level = this.open.level;
    this.onClosed(this.open.node);
    this.open = null;
  }

  forget() {
    if (!this.passing) return;
    const list = this.passing.node.parentNode;
    this.passing.node.remove();
    if (list !== this.root && !list?.hasChildNodes()) list?.remove();
    this.list = this.listBefore;
    this.outline.level = this.levelBefore;
    this.passing = null;
  }

  // Shows the open block, and what has arrived of the line after it.
  draw(from, to) {
    this.forget();
    const line = this.source.text.slice(from, to);
    const isCode = this.open instanceof Fence;
    const tail = from < to && !kUndecided.test(line) ? [from, to] : null;
    const goesOn = tail && this.open?.takes(line);
    this.open?.draw(this.source, goesOn || (isCode && tail) ? tail : null, true);
    if (!tail || goesOn || isBlank(line)) return;
    this.listBefore = this.list;
    this.levelBefore = this.outline.level;
    this.passing = this.begun(line);
    this.place(this.passing);
    if (this.passing instanceof Fence) return;
    if (this.passing instanceof Holder) this.passing.add(line, from, to);
    this.passing.draw(this.source, this.passing instanceof Holder ? null : tail, true);
  }

  end() {
    this.forget();
    this.close();
  }
}

// A part of a text, which is drawn into an element while it arrives.
class Markdown {
  constructor(source, root, from, onClosed) {
    this.source = source;
    this.blocks = new Blocks(source, root, 0, { level: 2 }, onClosed);
    this.at = from;  // where the unfinished line begins
    this.to = from;  // where the part ends so far
    this.isOver = false;
  }

  // Draws for at most so many milliseconds. False: there is more to draw.
  draw(milliseconds) {
    const until = performance.now() + milliseconds;
    while (this.takeLine()) if (performance.now() > until) return false;
    if (this.isOver) this.end();
    else this.blocks.draw(this.at, this.to);
    return true;
  }

  end() {
    if (this.at < this.to) this.blocks.line(this.at, this.to);
    this.at = this.to;
    this.blocks.end();
  }

  // Lines that are too long are taken in parts.
  takeLine() {
    const near = this.source.text.slice(this.at, Math.min(this.to, this.at + kLongLine + 1));
    const end = near.indexOf("\n");
    if (end >= 0) {
      this.blocks.line(this.at, this.at + end);
      this.at += end + 1;
      return true;
    }
    if (near.length <= kLongLine) return false;
    let cut = near.lastIndexOf(" ") + 1;
    if (cut < kLongLine / 2) cut = kLongLine - (/[\uDC00-\uDFFF]/.test(near[kLongLine]) ? 1 : 0);
    this.blocks.line(this.at, this.at + cut, true);
    this.at += cut;
    return true;
  }
}
