// Uses `aerie serve` through the official client of OpenAI's API:
//   openai_test.mjs PROGRAM REPOSITORY
// Needs `npm ci` in this folder; without it the test is skipped (exit status 77).
import assert from "node:assert/strict";
import { generate, serve } from "./serving.mjs";

const OpenAI = await import("openai").then((module) => module.default, () => {
  console.log("SKIPPED: no openai package; run npm ci in tests/node");
  process.exit(77);
});
let calls = 0;
const counted = (...given) => {
  ++calls;
  return fetch(...given);
};

async function start(...flags) {
  const { server, baseURL } = await serve(...flags);
  const client = (more) => new OpenAI({ apiKey: "secret", baseURL, fetch: counted, maxRetries: 0, ...more });
  return { server, client, ask: client() };
}

const messages = [{ role: "user", content: "Tell me a story." }];
const chat = { model: "aerie-tiny", messages, max_tokens: 32, temperature: 0.7, seed: 5 };
const story = { model: "aerie-tiny", prompt: "Once upon a time", max_tokens: 32, temperature: 0.7, seed: 5 };

async function collect(stream) {
  const all = { text: [], finish: [], usage: null, parts: 0 };
  for await (const part of stream) {
    ++all.parts;
    if (part.usage) all.usage = part.usage;
    for (const choice of part.choices) {
      all.text[choice.index] = (all.text[choice.index] ?? "") + (choice.text ?? choice.delta.content ?? "");
      if (choice.finish_reason) all.finish[choice.index] = choice.finish_reason;
    }
  }
  return all;
}

async function refused(promise, kind, status, code, param) {
  const error = await promise.then(() => assert.fail("it was not refused"), (error) => error);
  assert.ok(error instanceof kind, `${error}`);
  assert.deepEqual([error.status, error.code, error.param], [status, code, param], error.message);
}

async function models({ ask }) {
  const list = await ask.models.list();
  assert.deepEqual(list.data.map((one) => one.id), ["aerie-tiny"]);
  assert.equal((await ask.models.retrieve("aerie-tiny")).id, "aerie-tiny");
  await refused(ask.models.retrieve("gpt-4"), OpenAI.NotFoundError, 404, "model_not_found", "model");
}

async function texts({ ask }) {
  const sampled = ["-n", "32", "--temp", "0.7", "-s", "5"];
  const wantChat = generate("Tell me a story.", "--chat", ...sampled), want = generate("Once upon a time", ...sampled);
  for (const draft of [true, false]) {
    const whole = await ask.chat.completions.create({ ...chat, draft });
    assert.equal(whole.choices[0].message.content, wantChat.text);
    assert.equal(whole.choices[0].finish_reason, wantChat.finish_reason);
    assert.equal(whole.usage.completion_tokens, wantChat.ids.length);
    assert.equal(whole.usage.prompt_tokens, wantChat.prompt_ids.length);
    assert.equal((await collect(await ask.chat.completions.create({ ...chat, draft, stream: true }))).text[0], wantChat.text);
    assert.equal((await ask.completions.create({ ...story, draft })).choices[0].text, want.text);
    assert.equal((await collect(await ask.completions.create({ ...story, draft, stream: true }))).text[0], want.text);
  }
  const together = await Promise.all(Array.from({ length: 8 }, (_, i) => ask.completions.create({ ...story, seed: 5 + (i % 2) * i })));
  together.forEach((one, i) => i % 2 || assert.equal(one.choices[0].text, want.text));
}

async function streams({ ask }) {
  const whole = await ask.chat.completions.create(chat);
  const all = await collect(await ask.chat.completions.create({ ...chat, stream: true, stream_options: { include_usage: true } }));
  assert.equal(all.text[0], whole.choices[0].message.content);
  assert.equal(all.usage.total_tokens, whole.usage.total_tokens);
  assert.ok(all.parts > 4);
  // The client's own helper that joins the parts of a stream.
  const run = ask.chat.completions.stream({ ...chat, stream_options: { include_usage: true } });
  let said = "";
  run.on("content", (delta) => { said += delta; });
  const final = await run.finalChatCompletion();
  assert.equal(final.choices[0].message.content, whole.choices[0].message.content);
  assert.equal(said, whole.choices[0].message.content);
}

async function choices({ ask }) {
  const many = await ask.completions.create({ ...story, n: 3 });
  assert.deepEqual(many.choices.map((choice) => choice.index), [0, 1, 2]);
  const second = await ask.completions.create({ ...story, seed: 6 });
  assert.equal(many.choices[1].text, second.choices[0].text);
  const streamed = await collect(await ask.completions.create({ ...story, n: 3, stream: true }));
  assert.deepEqual(streamed.text, many.choices.map((choice) => choice.text));
  const random = await ask.completions.create({ ...story, seed: undefined });
  const again = await ask.completions.create({ ...story, seed: random.choices[0].aerie.seed });
  assert.equal(random.choices[0].text, again.choices[0].text);
}

async function stops({ ask }) {
  const { text } = (await ask.completions.create(story)).choices[0];
  const stop = text.slice(10, 14);
  for (const given of [stop, ["never said", stop]]) {
    const { choices: [choice] } = await ask.completions.create({ ...story, stop: given });
    assert.deepEqual([choice.text, choice.finish_reason], [text.slice(0, text.indexOf(stop)), "stop"]);
  }
  const all = await collect(await ask.completions.create({ ...story, stop, stream: true }));
  assert.deepEqual([all.text[0], all.finish[0]], [text.slice(0, text.indexOf(stop)), "stop"]);
}

async function logprobs({ ask }) {
  const { choices: [choice] } = await ask.chat.completions.create({ ...chat, temperature: 0, logprobs: true, top_logprobs: 4 });
  const bytes = choice.logprobs.content.flatMap((entry) => entry.bytes);
  assert.equal(Buffer.from(bytes).toString().trim(), choice.message.content.trim());
  for (const entry of choice.logprobs.content) {
    assert.equal(entry.top_logprobs.length, 4);
    assert.equal(entry.logprob, entry.top_logprobs[0].logprob);
    assert.ok(entry.logprob <= 0);
  }
  const text = await ask.completions.create({ ...story, logprobs: 2 });
  const scores = text.choices[0].logprobs;
  assert.equal(scores.tokens.length, scores.token_logprobs.length);
  const biased = await ask.completions.create({ ...story, max_tokens: 4, logit_bias: { 300: 100 }, logprobs: 0 });
  assert.equal(new Set(biased.choices[0].logprobs.tokens).size, 1);
}

async function refusals({ ask, client }) {
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
  await refused(ask.chat.completions.create({ ...chat, tools }), OpenAI.BadRequestError, 400, "unsupported_parameter", "tools");
  await refused(ask.chat.completions.create({ ...chat, response_format: { type: "json_object" } }), OpenAI.BadRequestError, 400,
    "unsupported_parameter", "response_format");
  await refused(ask.chat.completions.create({ ...chat, temperature: 5 }), OpenAI.BadRequestError, 400, "invalid_value", "temperature");
  await refused(ask.chat.completions.create({ ...chat, n: 9 }), OpenAI.BadRequestError, 400, "invalid_value", "n");
  await refused(ask.chat.completions.create({ ...chat, messages: [] }), OpenAI.BadRequestError, 400, "invalid_value", "messages");
  await refused(ask.completions.create({ ...story, prompt: Array(5000).fill(300) }), OpenAI.BadRequestError, 400,
    "context_length_exceeded", "prompt");
  await ask.chat.completions.create({ ...chat, model: "gpt-4" });  // one model is served, by any name
  await refused(client({ apiKey: "wrong" }).models.list(), OpenAI.AuthenticationError, 401, "invalid_api_key", null);
  await refused(ask.embeddings.create({ model: "aerie-tiny", input: "x" }), OpenAI.NotFoundError, 404, "unknown_url", null);
}

async function aborts({ ask, client }) {
  const want = (await ask.completions.create(story)).choices[0].text;
  const long = { ...story, max_tokens: 900, stream: true, logit_bias: { 2: -100 } };
  for (let parts = 1; parts <= 5; ++parts) {
    const stream = await ask.completions.create(long);
    let seen = 0;
    for await (const part of stream) if (part && ++seen === parts) break;  // leaving the loop aborts the request
    assert.equal(seen, parts);
  }
  const controller = new AbortController();
  const stream = await ask.completions.create(long, { signal: controller.signal });
  controller.abort();
  assert.ok((await collect(stream)).parts < 900);
  const hurried = client({ timeout: 50 });
  await assert.rejects(hurried.completions.create({ ...long, stream: false }), OpenAI.APIConnectionTimeoutError);
  assert.equal((await ask.completions.create(story)).choices[0].text, want);
}

const running = await start("-c", "1024");
try {
  for (const test of [models, texts, streams, choices, stops, logprobs, refusals, aborts]) {
    await test(running);
    console.log(`${test.name}: ok, ${calls} calls so far`);
  }
  assert.ok(calls >= 30);
} finally {
  running.server.removeAllListeners("exit");
  const ended = new Promise((resolve) => running.server.on("exit", resolve));
  running.server.kill("SIGTERM");
  assert.equal(await ended, 0);
}
