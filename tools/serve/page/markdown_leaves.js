// Blocks of Markdown that contain lines but no blocks, and the patterns that tell all kinds apart.

const kLongLine = 1500, kLongParagraph = 2500, kLongItem = 8000, kChunkLines = 40, kChunkItems = 40, kMaxLevels = 6;
const kFence = /^ {0,3}(`{3,}|~{3,}) *([^`]*)$/;
const kHeading = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const kRule = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const kItem = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]{1,4})(?=\S)|[ \t]*$)/;
const kQuote = /^ {0,3}> ?/;
const kDivider = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
// A line that could still become one of another kind, and is not shown before that is known.
const kUndecided = /^ {0,9}(?:`+|~+|#+|[-*+]+|>|\d+[.)]?|\|[ |:-]*)? ?$/;

const isBlank = (line) => !/\S/.test(line);
const beginsOther = (line) =>
  kFence.test(line) || kHeading.test(line) || kQuote.test(line) || kItem.test(line) || kRule.test(line);

class Leaf {
  constructor(tag, most) {
    this.node = make(tag);
    this.most = most;
    this.lines = [];
    this.size = 0;
  }
  add(line, from, to) {
    this.lines.push([from, to]);
    this.size += to - from + 1;
  }
  get isFull() {
    return this.size > this.most;
  }
}

class Paragraph extends Leaf {
  constructor() {
    super("p", kLongParagraph);
    this.formula = null;  // the mark that closes the open one
  }
  takes(line) {
    return !isBlank(line) && (this.formula !== null || !beginsOther(line));
  }
  add(line, from, to) {
    super.add(line, from, to);
    this.formula = openFormula(line, this.formula);
  }
  draw(source, tail, isOpen) {
    this.node.replaceChildren();
    new Inline(source, tail ? [...this.lines, tail] : this.lines, isOpen).draw(this.node);
  }
}

// Headings of an answer stand below that of its turn, and leave out no level, whatever the model wrote; they look as it
// meant them.
class Heading extends Leaf {
  constructor(line, outline) {
    const level = kHeading.exec(line)[1].length;
    const shown = Math.min(6, level + 2, outline.level + 1);
    super("h" + shown, 0);
    this.level = shown;
    this.node.dataset.level = level;
  }
  takes() {
    return false;
  }
  draw(source, tail, isOpen) {
    let [from, to] = tail ?? this.lines[0];
    const space = (i) => " \t".includes(source.text[i]);
    while (from < to && (space(from) || source.text[from] === "#")) ++from;
    let end = to;
    while (end > from && (space(end - 1) || source.text[end - 1] === "#")) --end;
    if (end < to && space(end)) to = end;
    this.node.replaceChildren();
    new Inline(source, [[from, to]], isOpen).draw(this.node);
  }
}

class Rule extends Leaf {
  constructor() {
    super("hr", 0);
  }
  takes() {
    return false;
  }
  draw() {}
}

// A block of code. Text is only ever appended to it, but for the word that is arriving.
class Fence {
  constructor(line) {
    const [, mark, info] = kFence.exec(line), name = info.trim().split(" ")[0];
    this.mark = mark;
    this.code = make("pre", { tabIndex: 0 });
    const copy = make("button", { type: "button", className: "link copy", textContent: "Copy" });
    const bar = make("div", { className: "bar" }, make("span", { textContent: name }), copy);
    this.node = make("figure", { className: "code" }, bar, this.code);
    copy.addEventListener("click", () => copyText(this.code.textContent, copy));
    const language = languageOf(name);
    this.lexer = language ? new Lexer(language) : null;
    this.isFull = false;
    this.count = 0;
    this.drawn = -1;  // the source is drawn up to here
    this.pending = [];
  }
  takes() {
    return true;
  }
  closes(line) {
    const found = kFence.exec(line);
    return found && !found[2] && found[1][0] === this.mark[0] && found[1].length >= this.mark.length;
  }
  add(line, from, to, isCut) {
    if (this.drawn < 0) this.drawn = to;  // the opening line is no code
    else if (this.closes(line)) this.isFull = true;
    else this.pending.push([from, to, isCut ? "" : "\n"]);
  }
  draw(source, tail) {
    this.arriving?.remove();
    this.arriving = null;
    for (const [from, to, end] of this.pending) {
      this.append(source, from, to, true);
      this.chunk.append(end);
      ++this.count;
      if (end) this.lexer?.endLine();
      else this.chunk = null;  // the line was too long and continues below
    }
    this.pending = [];
    if (tail && !this.closes(source.text.slice(...tail))) this.append(source, ...tail, false);
  }
  append(source, from, to, isWhole) {
    if (!this.chunk || (this.count % kChunkLines === 0 && this.count !== this.begun)) {
      this.begun = this.count;
      this.chunk = make("code");
      this.code.append(this.chunk);
    }
    from = Math.max(from, this.drawn);
    if (from >= to) return;
    const take = (begin, end, kind) => source.emit(this.chunk, begin, end, kind);
    this.drawn = this.lexer ? this.lexer.read(source.text, from, to, isWhole, take) : to;
    if (!this.lexer) take(from, to, "");
    if (this.drawn === to) return;
    this.arriving = make("span");
    source.emit(this.arriving, this.drawn, to);
    this.chunk.append(this.arriving);
  }
}

// Cells of a row, each [from, to) in the source.
function cellsOf(source, [from, to]) {
  const cells = [];
  let begin = from, isCode = false;
  const line = source.text.slice(from, to);
  for (let i = from; i <= to; ++i) {
    const formula = i < to && !isCode ? formulaEnd(line, i - from, line.length) : -1;
    if (formula > 0) i = from + formula - 1;
    else if (i < to && source.text[i] === "\\") ++i;
    else if (i < to && source.text[i] === "`") isCode = !isCode;
    else if (i === to || (source.text[i] === "|" && !isCode)) {
      cells.push([begin, Math.min(i, to)]);
      begin = i + 1;
    }
  }
  const blank = ([a, b]) => isBlank(source.text.slice(a, b));
  if (cells.length > 1 && blank(cells[0])) cells.shift();
  if (cells.length > 1 && blank(cells.at(-1))) cells.pop();
  return cells.map(([a, b]) => {
    while (a < b && source.text[a] === " ") ++a;
    while (a < b && source.text[b - 1] === " ") --b;
    return [a, b];
  });
}

// A table. Complete rows are drawn only once.
class Table {
  constructor(source, head, divider) {
    this.aligns = cellsOf(source, divider).map((cell) => {
      const text = source.text.slice(...cell);
      return text.endsWith(":") ? (text.startsWith(":") ? "center" : "right") : "";
    });
    this.body = make("tbody");
    const table = make("table", {}, make("thead", {}, this.row(source, head, "th", false)), this.body);
    this.node = make("div", { className: "table", tabIndex: 0 }, table);
    this.pending = [];
    this.isFull = false;
  }
  takes(line) {
    return line.includes("|") && !isBlank(line);
  }
  add(line, from, to) {
    this.pending.push([from, to]);
  }
  draw(source, tail) {
    this.last?.remove();
    this.body.append(...this.pending.map((line) => this.row(source, line, "td", false)));
    this.pending = [];
    this.last = tail && this.row(source, tail, "td", true);
    if (this.last) this.body.append(this.last);
  }
  row(source, line, tag, isOpen) {
    const row = make("tr");
    const cells = cellsOf(source, line);
    for (let i = 0; i < Math.min(Math.max(cells.length, this.aligns.length), 64); ++i) {
      const cell = make(tag);
      if (this.aligns[i]) cell.style.textAlign = this.aligns[i];
      if (cells[i]) new Inline(source, [cells[i]], isOpen).draw(cell);
      row.append(cell);
    }
    return row;
  }
}
