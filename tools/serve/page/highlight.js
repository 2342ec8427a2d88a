// Colours of code: comments, strings, numbers, keywords. A line is read as it arrives, and what is read is not read
// again but for its last word.

const wordSet = (text) => new Set(text.split(" "));
const kCWords = "auto bool break case char const continue default do double else enum extern false float for goto if inline int long nullptr NULL return short signed sizeof static struct switch true typedef union unsigned void volatile while";
const kCppWords = kCWords + " alignas alignof and catch class co_await co_return co_yield concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export final friend import module mutable namespace new noexcept not operator or override private protected public reinterpret_cast requires static_assert static_cast template this throw try typename using virtual wchar_t";
const kJsWords = "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace never new null number of override private protected public readonly return satisfies set static string super switch symbol this throw true try type typeof undefined unknown var void while with yield";
const kJavaWords = "abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long native new null package private protected public record return sealed short static super switch synchronized this throw throws transient true try var void volatile when while yield permits";
const kSqlWords = "add all alter and any as asc begin between by case cast check column commit constraint create cross database default delete desc distinct drop else end except exists false foreign from full grant group having if in index inner insert intersect into is join key left like limit not null offset on or order outer over partition primary references returning right rollback select set table then transaction true truncate union unique update using values view when where with";

// `line` and `block` are marks of comments, `strings` those of strings that end with their line, `long` of others.
const kLanguages = [
  { names: "python py", line: "#", strings: ["\"", "'"], long: ["\"\"\"", "'''"], extra: "@[\\w.]+",
    words: "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield" },
  { names: "javascript js jsx mjs typescript ts tsx", line: "//", block: ["/*", "*/"], strings: ["\"", "'"], long: ["`"], words: kJsWords },
  { names: "c h", line: "//", block: ["/*", "*/"], strings: ["\"", "'"], extra: "#[a-z]+", words: kCWords },
  { names: "cpp c++ cc cxx hpp cuda cu", line: "//", block: ["/*", "*/"], strings: ["\"", "'"], extra: "#[a-z]+", words: kCppWords },
  { names: "java kotlin kt csharp c# cs scala swift", line: "//", block: ["/*", "*/"], strings: ["\"", "'"], long: ["\"\"\""], extra: "@\\w+",
    words: kJavaWords + " base bool data def delegate decimal event foreach fun func guard internal is let nil object out override params ref self string struct trait type typealias using val virtual" },
  { names: "rust rs", line: "//", block: ["/*", "*/"], long: ["\""], extra: "#!?\\[[^\\]\\n]*\\]", quoted: "'(?:\\\\[^'\\n]*|[^'\\\\\\n])'",
    words: "as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for i16 i32 i64 i8 if impl in isize let loop match mod move mut pub ref return self Self static str struct super trait true type u16 u32 u64 u8 unsafe use usize where while" },
  { names: "go golang", line: "//", block: ["/*", "*/"], strings: ["\"", "'"], long: ["`"],
    words: "any bool break byte case chan const continue default defer else error fallthrough false float32 float64 for func go goto if import int int32 int64 interface iota make map new nil package range return rune select string struct switch true type uint uint64 var" },
  { names: "shell sh bash zsh console", line: "#", lineAfter: "(?<![^\\s;(])", long: ["\"", "'"], extra: "\\$\\{?\\w+\\}?",
    words: "alias break case continue declare do done elif else esac eval exec exit export fi for function if in local read readonly return set shift source then trap unset until while" },
  { names: "sql sqlite postgresql mysql", line: "--", block: ["/*", "*/"], strings: ["'", "\""], anyCase: true, words: kSqlWords },
  { names: "json jsonc json5", line: "//", block: ["/*", "*/"], strings: ["\""], words: "true false null" },
  { names: "yaml yml toml ini dockerfile makefile make cmake ruby rb r", line: "#", lineAfter: "(?<!\\S)", strings: ["\"", "'"],
    words: "true false null yes no on off begin class def do each else elsif end ensure false for function if in module nil require rescue return self then unless until while FROM RUN COPY ENV CMD WORKDIR endif endforeach foreach set" },
  { names: "html xml svg vue", isMarkup: true, block: ["<!--", "-->"], strings: ["\"", "'"], words: "" },
  { names: "css scss less", block: ["/*", "*/"], strings: ["\"", "'"], extra: "@[\\w-]+|!important|#[\\da-fA-F]{3,8}\\b|--[\\w-]+", words: "and from important not only or to" },
];

const quotedMark = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
const kNumber = "(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)[\\w%]*";

function languageOf(name) {
  const language = kLanguages.find(({ names }) => names.split(" ").includes(name.toLowerCase()));
  if (!language || language.rule) return language;
  const { line, lineAfter = "", block, strings = [], long = [], quoted, extra, isMarkup } = language;
  const group = (kind, pattern) => (pattern ? `(?<${kind}>${pattern})` : null);
  const marks = [...long, ...strings].sort((a, b) => b.length - a.length).map(quotedMark).join("|");
  const rules = [group("comment", line && lineAfter + quotedMark(line)), group("block", block && quotedMark(block[0])),
                 group("string", quoted), group("extra", extra), group("quote", marks), group("number", kNumber),
                 group("word", "[\\p{L}_$][\\p{L}\\p{N}_$]*"), group("space", "\\s+"), "[^]"];
  const all = isMarkup ? [rules[1], group("tag", "<[/!?]?[A-Za-z][\\w:-]*"), "[^<]+", "[^]"] : rules;
  const inTag = [group("quote", marks), group("endTag", "[/?]?>"), group("name", "[\\w:@.-]+"), group("space", "\\s+"), "[^]"];
  const pattern = (parts) => new RegExp(parts.filter(Boolean).join("|"), "uy");
  return Object.assign(language, { rule: pattern(all), tagRule: isMarkup && pattern(inTag), keywords: wordSet(language.words) });
}

class Lexer {
  constructor(language) {
    this.language = language;
    this.open = null;  // the comment or string that goes on: {kind, close, isLong, escapes}
    this.inTag = false;
  }

  // Calls take(from, to, kind) for what is certain of text[from, to), and returns where that ends. `isWhole`: the line
  // ends at `to`.
  read(text, from, to, isWhole, take) {
    const base = Math.max(0, from - 1), line = text.slice(base, to);
    let at = from - base;
    while (at < line.length) {
      const end = this.open ? this.within(line, at, isWhole) : this.token(line, at, isWhole);
      if (end === at) break;
      take(base + at, base + end, this.kind);
      at = end;
    }
    return base + at;
  }

  endLine() {
    if (this.open && !this.open.isLong) this.open = null;
  }

  within(line, at, isWhole) {
    const { kind, close, escapes } = this.open;
    this.kind = kind;
    if (!close) return line.length;
    for (let i = at; i < line.length; ++i) {
      if (escapes && line[i] === "\\") {
        if (++i === line.length && !isWhole) return i - 1;
      } else if (line.startsWith(close, i)) {
        this.open = null;
        return i + close.length;
      } else if (!isWhole && close.startsWith(line.slice(i))) {
        return i;
      }
    }
    return line.length;
  }

  token(line, at, isWhole) {
    const rule = this.inTag ? this.language.tagRule : this.language.rule;
    rule.lastIndex = at;
    const { 0: found, groups } = rule.exec(line), end = at + found.length;
    // The last word may go on, and the last mark may become a longer one.
    if (end === line.length && !isWhole && !groups.space) return at;
    this.kind = this.kindOf(groups, found);
    return end;
  }

  kindOf(groups, found) {
    const { language } = this;
    if (groups.comment) this.open = { kind: "comment" };
    else if (groups.block) this.open = { kind: "comment", close: language.block[1], isLong: true };
    else if (groups.quote) {
      const isLong = this.inTag || (language.long ?? []).includes(found);
      this.open = { kind: "string", close: found, isLong, escapes: !language.isMarkup && !language.anyCase };
    }
    if (this.open) return this.open.kind;
    if (groups.tag) this.inTag = true;
    if (groups.endTag) this.inTag = false;
    if (groups.tag || groups.endTag || groups.extra) return "keyword";
    if (groups.string) return "string";
    if (groups.number || groups.name) return "number";
    const word = groups.word && (language.anyCase ? found.toLowerCase() : found);
    return word && language.keywords.has(word) ? "keyword" : "";
  }
}
