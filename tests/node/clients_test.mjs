// Uses `aerie serve` through the AI SDK and LangChain, as programs do that were written for other servers:
//   clients_test.mjs PROGRAM REPOSITORY
// Needs `npm ci` in this folder; without it the test is skipped (exit status 77).
import assert from "node:assert/strict";

import { generate, serve } from "./serving.mjs";

const load = (name) => import(name).catch(() => {
  console.log(`SKIPPED: no ${name} package; run npm ci in tests/node`);
  process.exit(77);
});
const { generateText, streamText } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { ChatOpenAI } = await load("@langchain/openai");

const question = "Tell me a story.", more = "And then?";
const flags = ["--chat", "-n", "32", "--temp", "0.7", "-s", "5"];
const expected = generate(question, ...flags).text;
let checks = 0;

function same(got, wanted, what) {
  assert.equal(got, wanted, what);
  ++checks;
}

async function joined(stream, textOf) {
  let text = "";
  for await (const part of stream) text += textOf(part);
  return text;
}

// Answers of another server carry members that this one does not know.
const foreign = { annotations: [{ type: "url_citation" }], reasoning_content: "Hm.", tool_calls: [], id: "msg_1" };

async function aiSdk(baseURL) {
  const provider = createOpenAICompatible({ name: "aerie", baseURL, apiKey: "secret", includeUsage: true });
  const ask = { model: provider("gpt-4o"), maxOutputTokens: 32, temperature: 0.7, seed: 5, maxRetries: 0 };
  const whole = await generateText({ ...ask, prompt: question });
  same(whole.text, expected, "generateText");
  assert.ok(whole.usage.outputTokens > 0 && whole.finishReason, JSON.stringify(whole.usage));
  const stream = streamText({ ...ask, prompt: question });
  same(await joined(stream.textStream, (part) => part), expected, "streamText");
  assert.ok((await stream.usage).inputTokens > 0);
  const messages = [{ role: "user", content: question }, { role: "assistant", content: [
    { type: "reasoning", text: "Hm." }, { type: "text", text: expected }] }, { role: "user", content: more }];
  const second = await generateText({ ...ask, messages });
  same(await joined(streamText({ ...ask, messages }).textStream, (part) => part), second.text, "a second turn, streamed");
}

async function langChain(baseURL) {
  const model = new ChatOpenAI({ model: "gpt-4o", apiKey: "secret", configuration: { baseURL }, maxTokens: 32,
    temperature: 0.7, modelKwargs: { seed: 5 }, maxRetries: 0, useResponsesApi: false });
  same((await model.invoke(question)).content, expected, "invoke");
  same(await joined(await model.stream(question), (part) => part.content), expected, "stream");
  const { AIMessage, HumanMessage } = await load("@langchain/core/messages");
  const talk = [new HumanMessage(question), new AIMessage({ content: expected, additional_kwargs: foreign }),
    new HumanMessage(more)];
  const second = await model.invoke(talk);
  same(await joined(await model.stream(talk), (part) => part.content), second.content, "a second turn, streamed");
}

async function echoedAnswers(baseURL) {
  const reply = await fetch(baseURL + "/chat/completions", { method: "POST",
    headers: { "Content-Type": "application/json", Authorization: "Bearer secret" },
    body: JSON.stringify({ model: "other", max_tokens: 8, messages: [{ role: "user", content: question, name: "ada" },
      { role: "assistant", content: expected, ...foreign, refusal: null, audio: null },
      { role: "user", content: [{ type: "text", text: more, cache_control: { type: "ephemeral" } }] }] }) });
  assert.equal(reply.status, 200, await reply.clone().text());
  ++checks;
}

const { server, baseURL } = await serve();
try {
  await aiSdk(baseURL);
  await langChain(baseURL);
  await echoedAnswers(baseURL);
} finally {
  server.kill("SIGKILL");
}
console.log(`${checks} answers`);
