// Writes a tokenizer.json as the metadata of a GGUF file without tensors.

const number = (bytes, put) => {
  const out = Buffer.alloc(bytes);
  put(out);
  return out;
};
const u32 = (value) => number(4, (out) => out.writeUInt32LE(value));
const i32 = (value) => number(4, (out) => out.writeInt32LE(value));
const f32 = (value) => number(4, (out) => out.writeFloatLE(value));
const u64 = (value) => number(8, (out) => out.writeBigUInt64LE(BigInt(value)));
const text = (value) => {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
};
const kinds = { u32: [4, u32], i32: [5, i32], f32: [6, f32], bool: [7, (value) => Buffer.from([value ? 1 : 0])], text: [8, text] };
const list = (kind, values) => Buffer.concat([u32(9), u32(kinds[kind][0]), u64(values.length), ...values.map(kinds[kind][1])]);
const one = (kind, value) => Buffer.concat([u32(kinds[kind][0]), kinds[kind][1](value)]);

const normal = 1, unknown = 2, control = 3, userDefined = 4, unused = 5, byte = 6;

// Tokens by id, with their types. Missing ids get a token that no text is encoded to.
function tokensOf({ model, added_tokens: added }) {
  const tokens = [];
  for (const [token, id] of Object.entries(model.vocab))
    tokens[id] = { token, type: model.byte_fallback && /^<0x[0-9A-F]{2}>$/.test(token) ? byte : normal };
  for (const { id, content, special } of added) {
    // User-defined tokens are searched in the raw text, before spaces become U+2581.
    const token = model.byte_fallback && !special ? content.replaceAll("\u2581", " ") : content;
    tokens[id] = { token, type: special ? control : userDefined };
  }
  for (let id = 0; id < tokens.length; ++id) tokens[id] ??= { token: `[PAD${id}]`, type: unused };
  if (model.unk_token) tokens[model.vocab[model.unk_token]].type = unknown;
  return tokens;
}

const sides = (merge) => (typeof merge === "string" ? merge.split(" ") : merge);

// Scores in the order of the merges, which replace the merges.
function scoresOf(model, count) {
  const scores = new Array(count).fill(0);
  model.merges.forEach((merge, rank) => {
    const id = model.vocab[sides(merge).join("")];
    if (scores[id] === 0) scores[id] = -rank - 1;
  });
  return scores;
}

// `pre`: the name of the pre-tokenizer of a byte-level vocabulary; null: SentencePiece tokens with scores.
export function gguf(json, pre, addsSpace) {
  const tokens = tokensOf(json);
  const entries = {
    "general.architecture": one("text", "llama"),
    "tokenizer.ggml.model": one("text", pre ? "gpt2" : "llama"),
    "tokenizer.ggml.pre": one("text", pre ?? "default"),
    "tokenizer.ggml.tokens": list("text", tokens.map(({ token }) => token)),
    "tokenizer.ggml.token_type": list("i32", tokens.map(({ type }) => type)),
  };
  if (pre) {
    entries["tokenizer.ggml.merges"] = list("text", json.model.merges.map((merge) => sides(merge).join(" ")));
  } else {
    entries["tokenizer.ggml.scores"] = list("f32", scoresOf(json.model, tokens.length));
    entries["tokenizer.ggml.add_space_prefix"] = one("bool", addsSpace);
    entries["tokenizer.ggml.unknown_token_id"] = one("u32", json.model.vocab[json.model.unk_token]);
  }
  const written = Object.entries(entries).map(([key, value]) => Buffer.concat([text(key), value]));
  return Buffer.concat([Buffer.from("GGUF"), u32(3), u64(0), u64(written.length), ...written]);
}
