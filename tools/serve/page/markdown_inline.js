// The inline elements of a line or a paragraph of Markdown.

const kMarks = /[\\`$*_~[!<h]/g;
const kEscapable = /[!-/:-@[-`{-~]/;
const kWord = /[\p{L}\p{N}_]/u;
const kBareUrl = /https?:\/\/[^\s<>"'`|]+/y;
const kMaxLabel = 400, kMaxUrl = 2000, kMaxNesting = 8;

// The address, or null if a click on it should open nothing.
function openable(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

// Lines of a source, each [from, to), as one text: spans may cross their ends.
class Inline {
  constructor(source, lines, isOpen) {
    this.source = source;
    this.text = lines.map(([from, to]) => source.text.slice(from, to)).join("\n");
    this.isOpen = isOpen;  // more text will come, which may close open spans
    this.lacking = new Set();
    this.places = new Uint32Array(this.text.length + 1);  // places in the source
    let i = 0;
    for (const [from, to] of lines) for (let k = from; k <= to; ++k) this.places[i++] = k;
  }

  draw(parent, from = 0, to = this.text.length, nesting = 0) {
    let plain = from;
    for (let i = from; i < to;) {
      kMarks.lastIndex = i;
      const found = kMarks.exec(this.text);
      if (!found || found.index >= to) break;
      i = found.index;
      const span = nesting < kMaxNesting ? this.span(i, to, nesting) : null;
      if (!span) {
        ++i;
        continue;
      }
      this.plain(parent, plain, i);
      if (span.node) parent.append(span.node);
      i = plain = span.end;
      i += span.skip ?? 0;
    }
    this.plain(parent, plain, to);
  }

  plain(parent, from, to) {
    while (from < to) {
      const depth = this.source.depths[this.places[from]];
      let end = from + 1;
      while (end < to && this.source.depths[this.places[end]] === depth) ++end;
      appendShaded(parent, this.text.slice(from, end), depth);
      from = end;
    }
  }

  // The span that begins at i: {node, end, skip}; null if it is a plain character. `skip` characters behind it are text.
  span(i, to, nesting) {
    const text = this.text;
    switch (text[i]) {
      case "\\":
        return this.formula(i, to) ?? this.escaped(i, to);
      case "$":
        return this.formula(i, to);
      case "`":
        return this.code(i, to);
      case "*":
      case "_":
      case "~":
        return this.emphasis(i, to, nesting);
      case "!":
        return text[i + 1] === "[" ? this.link(i + 1, to, nesting, true) : null;
      case "[":
        return this.link(i, to, nesting, false);
      case "<":
        return this.angle(i, to);
      default:
        return this.bareUrl(i, to);
    }
  }

  runAt(i, to) {
    let end = i;
    while (end < to && this.text[end] === this.text[i]) ++end;
    return end - i;
  }

  // Where the span closes, or -1. A search that failed once is not repeated.
  closing(key, to, search) {
    key += to;
    if (this.lacking.has(key)) return -1;
    const at = search();
    if (at < 0) this.lacking.add(key);
    return at;
  }

  closingTicks(from, to, count) {
    return this.closing("`" + count + ":", to, () => {
      for (let i = this.text.indexOf("`", from); i >= 0 && i < to; i = this.text.indexOf("`", i)) {
        const run = this.runAt(i, to);
        if (run === count) return i;
        i += run;
      }
      return -1;
    });
  }

  // An escaped bracket keeps its backslash: it may be of a formula.
  escaped(i, to) {
    const next = i + 1 < to ? this.text[i + 1] : " ";
    if ("()[]".includes(next)) return { end: i, skip: 2 };
    return kEscapable.test(next) ? { end: i + 1, skip: 1 } : null;
  }

  formula(i, to) {
    let end = formulaEnd(this.text, i, to), close = end - 2;
    const isSingle = this.text[i] === "$" && this.text[i + 1] !== "$", isDisplay = kDisplay.test(this.text.slice(i, i + 2));
    if (end < 0) {
      // It is a formula already while its end is yet to come.
      const isBegun = this.isOpen && to === this.text.length && i + 2 < to;
      if (isSingle || !isBegun || !kClosings[this.text.slice(i, i + 2)]) return null;
      close = end = to;
    }
    const size = isSingle ? 1 : 2, node = make("span", { className: isDisplay ? "formula display" : "formula" });
    if (isSingle) close = end - 1;
    this.within(node, i, i + size, "mark");
    this.plain(node, i + size, close);
    this.within(node, close, end, "mark");
    // The line break behind a line of its own would show as an empty line.
    if (isDisplay && this.text[end] === "\n" && end < to) this.plain(node, end, ++end);
    return { node, end };
  }

  within(parent, from, to, className) {
    const node = make("span", { className });
    this.plain(node, from, to);
    if (from < to) parent.append(node);
  }

  code(i, to) {
    const count = this.runAt(i, to);
    let close = this.closingTicks(i + count, to, count), end = close + count;
    if (close < 0) {
      if (!this.isOpen || to < this.text.length || i + count >= to) return null;
      close = end = to;
    }
    const node = make("code");
    const padded = close - i - count > 2 && this.text[i + count] === " " && this.text[close - 1] === " ";
    this.plain(node, i + count + padded, close - padded);
    return { node, end };
  }

  emphasis(i, to, nesting) {
    const mark = this.text[i], run = this.runAt(i, to);
    const size = run >= 2 ? 2 : 1, after = this.text[i + size];
    if (run > 3 || (mark === "~" && run !== 2) || i + size >= to || /\s/.test(after)) return null;
    if (mark === "_" && i > 0 && kWord.test(this.text[i - 1])) return null;
    let close = this.closing(mark + size + ":", to, () => this.closingMark(mark, size, i + size, to));
    let end = close + size;
    if (close <= i + size - 1) {
      if (!this.isOpen || size < 2 || to < this.text.length) return null;
      close = end = to;
    }
    const node = make(mark === "~" ? "del" : size === 2 ? "strong" : "em");
    this.draw(node, i + size, close, nesting + 1);
    return { node, end };
  }

  closingMark(mark, size, from, to) {
    for (let i = from; i < to; ++i) {
      if (this.text[i] === "`") {
        const run = this.runAt(i, to), end = this.closingTicks(i + run, to, run);
        i = end < 0 ? i + run - 1 : end + run - 1;
      } else if (this.text[i] === "\\" || this.text[i] === "$") {
        const end = formulaEnd(this.text, i, to);
        i = end > 0 ? end - 1 : this.text[i] === "$" ? i : i + 1;
      } else if (this.text[i] === mark) {
        const run = this.runAt(i, to), last = i + run;
        const closes = run >= size && (size === 2 || run !== 2) && i > from && !/\s/.test(this.text[i - 1]);
        if (closes && (mark !== "_" || last >= to || !kWord.test(this.text[last]))) return last - size;
        i = last - 1;
      }
    }
    return -1;
  }

  // [label](address "title"). Pictures become links, too: nothing is loaded before the user clicks.
  link(i, to, nesting, isPicture) {
    for (const part of ["](", ")"]) if (this.closing(part, to, () => this.text.indexOf(part, i)) < 0) return null;
    let depth = 0, close = i;
    const most = Math.min(to, i + kMaxLabel);
    for (; close < most; ++close) {
      if (this.text[close] === "\\") ++close;
      else if (this.text[close] === "[") ++depth;
      else if (this.text[close] === "]" && --depth === 0) break;
    }
    if (close >= most || this.text[close + 1] !== "(") return null;
    let end = close + 2, open = 1;
    for (const last = Math.min(to, end + kMaxUrl); end < last; ++end) {
      if (this.text[end] === "(") ++open;
      else if (this.text[end] === "\n" || (this.text[end] === ")" && --open === 0)) break;
    }
    if (this.text[end] !== ")" || end >= to) return null;
    const address = this.text.slice(close + 2, end).trim().split(/\s/)[0].replace(/^<|>$/g, "");
    const node = this.anchor(address);
    if (!node) return null;
    if (isPicture) node.append("picture: ");
    this.draw(node, i + 1, close, kMaxNesting);  // no link within a link
    if (close === i + 1) node.append(address);
    return { node, end: end + 1 };
  }

  anchor(address) {
    const href = openable(address);
    return href && make("a", { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" });
  }

  angle(i, to) {
    const rest = this.text.slice(i, Math.min(to, i + kMaxUrl));
    const line = /^<br ?\/?>/i.exec(rest);
    if (line) return { node: make("br"), end: i + line[0].length };
    const found = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/.exec(rest);
    const node = found && this.anchor(found[1]);
    if (!node) return null;
    this.plain(node, i + 1, i + 1 + found[1].length);
    return { node, end: i + found[0].length };
  }

  bareUrl(i, to) {
    if (i > 0 && kWord.test(this.text[i - 1])) return null;
    kBareUrl.lastIndex = i;
    const found = kBareUrl.exec(this.text);
    if (!found) return null;
    let end = Math.min(to, i + found[0].length, i + kMaxUrl);
    while (/[.,;:!?*_~\]]/.test(this.text[end - 1])) --end;
    if (this.text[end - 1] === ")" && !this.text.slice(i, end).includes("(")) --end;
    const node = this.anchor(this.text.slice(i, end));
    if (!node) return null;
    this.plain(node, i, end);
    return { node, end };
  }
}
