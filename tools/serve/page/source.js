// The page has one script, made of the files beside this one. Text never becomes HTML here: a
// model's output becomes text nodes, and elements are created by name.

const find = (selector, within = document) => within.querySelector(selector);

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// A growing text, with the depth in its draft tree for each of its characters; 0 for the target's
// own tokens.
class Source {
  constructor() {
    this.text = "";
    this.depths = new Uint8Array(1 << 12);
  }

  add(text, depth) {
    const from = this.text.length;
    this.text += text;
    if (this.text.length > this.depths.length) {
      const more = new Uint8Array(2 * this.text.length);
      more.set(this.depths);
      this.depths = more;
    }
    this.depths.fill(Math.min(depth, 255), from, this.text.length);
  }

  // Appends a part of the text, with drafted tokens, and text of some kind, in spans.
  emit(parent, from, to, kind = "") {
    while (from < to) {
      const depth = this.depths[from];
      let end = from + 1;
      while (end < to && this.depths[end] === depth) ++end;
      appendShaded(parent, this.text.slice(from, end), depth, kind);
      from = end;
    }
  }

  // [length, depth, length, depth, ...], the form in which the depths are kept.
  runs() {
    const runs = [];
    for (let i = 0; i < this.text.length; ++i) {
      if (runs.length && runs.at(-1) === this.depths[i]) ++runs[runs.length - 2];
      else runs.push(1, this.depths[i]);
    }
    return runs;
  }
}

const kDeepest = 6;  // deeper tokens get its shade

function appendShaded(parent, text, depth, kind = "") {
  if (!depth && !kind) return parent.append(text);
  const span = document.createElement("span");
  if (depth) span.dataset.depth = Math.min(depth, kDeepest);
  if (kind) span.className = "code-" + kind;
  span.textContent = text;
  parent.append(span);
}
