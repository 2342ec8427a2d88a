// Formulas in TeX: \( \), \[ \], $ $ and $$ $$. They are shown as they are written, and Markdown leaves them alone.

const kMostDollars = 400;  // characters between single dollars
const kDisplay = /^(?:\\\[|\$\$)/;
const kFormulaMarks = /\\[\[(]|\$\$|`+|\\./g;
const kClosings = { "\\(": "\\)", "\\[": "\\]", "$$": "$$" };

// Where the formula that begins at i ends; -1: none begins there.
function formulaEnd(text, i, to) {
  const mark = text.slice(i, i + 2), closing = kClosings[mark];
  if (!closing) return text[i] === "$" ? dollarsEnd(text, i, to) : -1;
  const close = text.indexOf(closing, i + 2);
  return close > i + 2 && close + 2 <= to ? close + 2 : -1;
}

// Single dollars are mostly prices. A formula has no blank inside its dollars, no digit behind them, and no word
// beside them but the "th" of an index; the next dollar must be its end.
function dollarsEnd(text, i, to) {
  if ((i > 0 && /[\p{L}\p{N}_$\\]/u.test(text[i - 1])) || !/[^\s$]/.test(text[i + 1] ?? " ")) return -1;
  for (let k = i + 1, most = Math.min(to, i + kMostDollars); k < most; ++k) {
    if (text[k] === "\\") ++k;
    else if (text[k] === "`") return -1;
    else if (text[k] === "$") {
      const rest = text.slice(k + 1, k + 4);
      if (/\s/.test(text[k - 1]) || /^[\p{N}_$]/u.test(rest)) return -1;
      if (/^\p{L}/u.test(rest) && !/^(?:th|st|nd|rd|s)(?!\p{L})/u.test(rest)) return -1;
      return isProse(text.slice(i + 1, k)) ? -1 : k + 1;
    }
  }
  return -1;
}

// "5 and you have 6" between the dollars of two prices.
const isProse = (text) => /^\d/.test(text) && /\s\p{L}{2,}\s/u.test(text) && !/[\\^_={}+<>]/.test(text);

// The mark that must come to close a formula, after this line; null: none is open. `closing` is that of the line before.
function openFormula(line, closing) {
  let at = 0;
  while (true) {
    if (closing) {
      const close = line.indexOf(closing, at);
      if (close < 0) return closing;
      at = close + 2;
    }
    kFormulaMarks.lastIndex = at;
    const found = kFormulaMarks.exec(line);
    if (!found) return null;
    at = found.index + found[0].length;
    closing = kClosings[found[0]] ?? null;
    if (found[0][0] !== "`") continue;
    const close = line.indexOf(found[0], at);
    if (close >= 0) at = close + found[0].length;
  }
}
