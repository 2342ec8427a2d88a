// Tells what a reasoning model thinks from what it answers, as `aerie chat` does: thoughts stand between <think> and
// </think>. They go back to the model with the answer, and its chat template decides what it reads of them. Here the
// first tag counts only where a line begins, since an answer may be about such tags.

const kBeginThought = "<think>", kEndThought = "</think>";

// Length of the longest beginning of the tag with which the text ends.
function begunTag(text, tag) {
  let length = Math.min(text.length, tag.length - 1);
  while (!text.endsWith(tag.slice(0, length))) --length;
  return length;
}

function thoughtBegins(text, from) {
  for (let place = text.indexOf(kBeginThought, from); place >= 0; place = text.indexOf(kBeginThought, place + 1)) {
    const line = text.slice(Math.max(text.lastIndexOf("\n", place - 1) + 1, place - 8), place);
    if (place === 0 || isBlank(line)) return place;
  }
  return -1;
}

// Cuts a growing text into parts. `take(from, to, isThought)` gets what there is of the open part, `close` is called at
// its end. Tags belong to no part, and a part begins with no blank.
class Thoughts {
  constructor(isThinking, take, close) {
    Object.assign(this, { isThinking, take, close, at: 0, from: -1 });
  }

  put(text, isOver = false) {
    while (true) {
      const tag = this.isThinking ? kEndThought : kBeginThought;
      const place = this.isThinking ? text.indexOf(tag, this.at) : thoughtBegins(text, this.at);
      this.give(text, place < 0 ? text.length - (isOver ? 0 : begunTag(text, tag)) : place);
      if (place < 0 && !isOver) return;
      if (this.from >= 0) this.close();
      this.from = -1;
      if (place < 0) return;
      this.at = place + tag.length;
      this.isThinking = !this.isThinking;
    }
  }

  give(text, to) {
    if (this.from < 0) while (this.at < to && /\s/.test(text[this.at])) ++this.at;
    if (this.at >= to) return;
    if (this.from < 0) this.from = this.at;
    this.at = to;
    this.take(this.from, to, this.isThinking);
  }
}

// The parts of a whole text: [{text, isThought}].
function partsOf(text, isThinking) {
  const parts = [];
  let part = null;
  const take = (from, to, isThought) => (part = { text: text.slice(from, to).trimEnd(), isThought });
  new Thoughts(isThinking, take, () => parts.push(part)).put(text, true);
  return parts;
}

const withoutThoughts = (text, isThinking) =>
  partsOf(text, isThinking).filter(({ isThought }) => !isThought).map((part) => part.text).join("\n\n");
