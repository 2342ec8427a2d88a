// 800 texts, the same in each run: everyday writing, and characters that pre-tokenizers treat specially.
const pieces = [
  "Hello", "world", "the river", " flows", "  and", "don't", "IT'S", "we'LL", "o'clock", "\u2019tis", "camelCase", "HTTPServer2",
  "SNAKE_CASE", "\u01c5", "naïve", "cafe\u0301", "Ångström", "\u212b", "Grüße", "İstanbul'da", "Привет", "мир", "γειά", "\u1f7d\u1fd3", "ა\u10a0",
  "你好", "世界。", "「引用」", "こんにちは", "カタカナ", "한국어", "ㅋㅋ", "नमस्ते", "สวัสดี", "مرحبا،", "كَيْف", "שָׁלוֹם", "Việt Nam", "e\u0323\u0302",
  "1", "22", "333", "4444", "55555", "1234567", "3.14", "1,000", "½", "Ⅷ", "٣٤٥", "①", "x²", "2024-01-02", "0xFF", "1e-9",
  " ", "  ", "   ", "        ", "\t", "\t\t", "\n", "\n\n", "\r\n", " \n", "\n ", "\n\n\n  ", "\u00a0", "\u2003", "\u3000", "\u200b", "\u200d", "\ufeff",
  ".", ",", "!", "?", "...", "!!!", "?!", "--", "—", "–", "«", "»", "“", "”", "'", "\"", "`", "´", "(", ")", "[", "]", "{", "}", "<", ">", "/", "\\",
  "|", "@", "#", "$", "%", "^", "&", "*", "+", "=", "~", "_", "-", ";", ":", "€", "£", "→", "∞", "±", "©", "😀", "🚀🚀", "👩‍💻", "🇩🇪", "☀️",
  "\u0000", "\u0001", "\u001b[0m", "\u007f", "\u0085", "int main() {\n    return 0;\n}\n", "def f(x):\n\treturn x\n", "<a href=\"x\">", "https://example.com/a?b=c",
  "user@example.com", "// comment\n", "a/b\n/c", "=".repeat(20), "-".repeat(33), "x".repeat(40), "ab".repeat(9), "\u0301\u0301", "𝔘𝔫𝔦", "Ａ１！",
];

let state = 12345;
const below = (limit) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
};

export const texts = pieces.flatMap((piece) => [piece, piece + " ", " " + piece, piece + piece]);
while (texts.length < 800) {
  let text = "";
  for (let count = 2 + below(14); count > 0; --count) text += pieces[below(pieces.length)] + (below(3) ? "" : " ");
  texts.push(text);
}
texts.length = 800;
