// The Node package streams, cancels, keeps a talk and tells where tokens come from, and blocks nothing; misuse rejects
// and never crashes:
//   node --expose-gc node_test.mjs REPOSITORY LIBRARY
// Needs koffi: npm ci in bindings/node; without it the test is skipped (exit status 77).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

const [repository, library] = process.argv.slice(2).map((one) => path.resolve(one));
if (!fs.existsSync(path.join(repository, "bindings", "node", "node_modules", "koffi"))) {
  console.log("SKIPPED: no koffi; run npm ci in bindings/node");
  process.exit(77);
}
process.env.AERIE_LIBRARY = library;
const entry = pathToFileURL(path.join(repository, "bindings", "node", "index.js")).href;
const { AerieError, Model, Session, Answer, devices, forecast, models } = await import(entry);

const tiny = path.join(repository, "models", "aerie-tiny");
const small = { device: "cpu", threads: 1, context: 512, cache: "", tree: [12, 4, 4] };
const prompt = "USER: A baker makes 24 rolls in the morning. How many rolls are left? ASSISTANT:";
const open = (more = {}) => Model.open(tiny, { ...small, ...more });
const rejects = (promise, code, note) => assert.rejects(promise, (error) => {
  assert.ok(error instanceof AerieError, `${note}: ${error}`);
  assert.equal(error.code, code, `${note}: ${error.message}`);
  return true;
});
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "aerie_node_"));
process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));

const tests = {
  async text_and_provenance() {
    const model = await open({ sessions: 2 }), talk = await model.session(), pieces = [];
    const answer = talk.stream(prompt, { maxTokens: 40, sampling: {}, alternatives: 2 });
    for await (const piece of answer) pieces.push(piece);
    assert.equal(pieces.map((one) => one.text).join(""), answer.text);
    assert.deepEqual([answer.tokens.length, answer.finish], [40, "length"]);
    assert.ok(pieces.length > 5 && pieces.length < 40, "drafts are accepted");
    assert.equal(answer.tokens[0].origin, "after_prompt");
    assert.ok(answer.tokens.some((token) => token.drafted));
    for (const token of answer.tokens) {
      assert.equal(token.drafted, token.depth > 0);
      assert.equal(token.alternatives[0].id, token.id);
    }
    assert.equal(Buffer.concat(answer.tokens.map((token) => token.bytes)).toString(), " " + answer.text);
    assert.ok(answer.statistics.tau > 1);
    assert.equal((await talk.cycle()).tokens.length, (await talk.cycle()).parents.length);
    const plain = talk.stream(prompt, { maxTokens: 40, sampling: {}, drafts: false });
    assert.equal(await plain.read(), answer.text);
    assert.equal(plain.tokens[0].logprob, undefined);
    const other = await model.session();
    const both = await Promise.all([talk, other].map((one) => one.stream(prompt, { maxTokens: 20, sampling: {} }).read()));
    assert.equal(both[0], both[1]);
    assert.equal(model.detokenize(model.tokenize("Grüß dich", { start: true })), "Grüß dich");
    assert.equal(model.render([{ role: "user", content: "Grüß dich" }]), "<s>USER: Grüß dich ASSISTANT:");
    assert.equal(await talk.stream(prompt, { maxTokens: 9, sampling: {}, stops: "cost" }).read(), "The baker ");
    const ids = model.tokenize(prompt, { start: true });
    assert.equal(await talk.stream(ids, { maxTokens: 9, seed: 3 }).read(), await talk.stream(prompt, { maxTokens: 9, seed: 3n }).read());
    model.close();
  },
  async a_talk_is_kept() {
    const model = await open({ sessions: 2 }), talk = await model.session();
    const first = talk.say("Hello", { maxTokens: 12, seed: 7 });
    const second = talk.say("And then?", { maxTokens: 12, seed: 7 }); // begins in its turn
    await second.read();
    await rejects(first.next(), "ARGUMENT", "an answer that was left");
    assert.deepEqual(talk.messages.map((one) => one.role), ["user", "assistant", "user", "assistant"]);
    assert.equal(talk.messages[3].content, second.text);
    const third = talk.say("More", { maxTokens: 12, seed: 7 });
    const text = await third.read();
    assert.ok(third.reusedTokens > 20);
    await talk.save(path.join(folder, "talk"));
    const again = await model.load(path.join(folder, "talk"));
    assert.deepEqual(await again.ids(), await talk.ids());
    const resumed = again.stream(talk.messages.slice(0, 5), { maxTokens: 12, seed: 7 });
    assert.equal(await resumed.read(), text);
    assert.ok(resumed.reusedTokens > 20);
    again.close();
    const fork = await talk.fork(5);
    assert.deepEqual(await fork.ids(), (await talk.ids()).slice(0, 5));
    await talk.rewind(3);
    assert.equal((await talk.ids()).length, 3);
    model.close();
  },
  async cancelled() {
    const model = await open(), talk = await model.session();
    const answer = talk.stream(prompt, { maxTokens: 400, ignoreEos: true });
    let count = 0;
    for await (const piece of answer) if (++count === 3) answer.cancel();
    assert.equal(answer.finish, "cancelled");
    assert.throws(() => answer[Symbol.asyncIterator](), AerieError);
    const control = new AbortController();
    const aborted = talk.stream(prompt, { maxTokens: 400, ignoreEos: true, signal: control.signal });
    for await (const piece of aborted) {
      control.abort();
      break;
    }
    for await (const piece of aborted); // a loop that was left is gone on with
    assert.equal(aborted.finish, "cancelled");
    const never = talk.stream(prompt, { maxTokens: 400, ignoreEos: true, signal: AbortSignal.abort() });
    await never.read();
    assert.equal(never.finish, "cancelled");
    assert.equal((await talk.stream(prompt, { maxTokens: 3, ignoreEos: true }).read()).length > 0, true);
    await assert.rejects(open({ signal: AbortSignal.abort() }), { name: "AbortError" });
    const late = new AbortController();
    await assert.rejects(open({ signal: late.signal, onProgress: () => late.abort() }), { name: "AbortError" });
    model.close();
  },
  async nothing_blocks() {
    const model = await open({ sessions: 2 }), talk = await model.session();
    let ticks = 0, longest = 0, before = performance.now();
    const timer = setInterval(() => {
      ++ticks;
      longest = Math.max(longest, performance.now() - before);
      before = performance.now();
    }, 1);
    const reports = [];
    await talk.stream(Array.from({ length: 400 }, (_, index) => 300 + index),
      { maxTokens: 60, ignoreEos: true, onProgress: (...now) => { reports.push(now); } }).read();
    clearInterval(timer);
    assert.ok(ticks > 5, `${ticks} ticks, the longest took ${longest} ms`);
    assert.deepEqual(reports[0], [0, 400]);
    model.close();
  },
  async what_is_here() {
    assert.ok(devices().some((one) => one.name === "cpu" && one.kind === "cpu"));
    assert.ok(models().some((one) => one.name === "aerie-tiny" && one.heads.includes("aerie-tiny-eagle")));
    assert.equal((await forecast(tiny, small)).fits, true);
    const stages = new Map();
    const model = await open({ onProgress: (stage, done, total) => { stages.set(stage, [done, total]); } });
    assert.deepEqual([...stages.keys()], ["model", "head"]);
    for (const [done, total] of stages.values()) assert.equal(done, total);
    assert.deepEqual([model.info.architecture, model.info.weights, model.info.hasChatTemplate], ["llama", "f16", true]);
    assert.equal(model.sampling.temperature, 0);
    model.close();
  },
  async failures_by_case() {
    for (const [code, given] of [["NOT_FOUND", { model: "no-such-model" }], ["NO_DEVICE", { device: "abacus" }],
      ["ARGUMENT", { weights: "q9" }], ["ARGUMENT", { context: 2 ** 40 }], ["ARGUMENT", { context: 1.5 }], ["ARGUMENT", { model: "a\0b" }],
      ["ARGUMENT", { model: 7 }], ["ARGUMENT", { threads: "4" }], ["ARGUMENT", { tree: 3 }], ["ARGUMENT", { hot: 1 }],
      ["CANCELLED", { onProgress: () => false }]]) {
      const { model = tiny, ...more } = given;
      await rejects(Model.open(model, { ...small, ...more }), code, JSON.stringify(given));
    }
    const all = await Promise.allSettled(Array.from({ length: 8 }, (_, i) => Model.open(i % 2 ? "none-such" : tiny, { ...small, device: i % 2 ? "cpu" : "abacus" })));
    all.forEach((one, i) => assert.equal(one.reason.code, i % 2 ? "NOT_FOUND" : "NO_DEVICE"));
    const model = await open(), talk = await model.session();
    await rejects(model.session(), "SESSIONS");
    await rejects(model.load(path.join(folder, "none")), "NOT_FOUND");
    await rejects(talk.save("/no/such/folder/file"), "FILE");
    await rejects(talk.stream(prompt.repeat(50)).read(), "TOO_LONG");
    model.close();
  },
  async misuse() {
    assert.throws(() => new Model(), AerieError);
    assert.throws(() => new Session(), AerieError);
    assert.throws(() => new Answer(), AerieError);
    const model = await open(), talk = await model.session();
    for (const wrong of [null, undefined, 7, true, [], ["x"], [2 ** 40], [-1], [1e6], { messages: 3 }, [{ role: "user" }], new Float32Array([1.5])])
      await assert.rejects(talk.stream(wrong).read(), AerieError, String(wrong));
    for (const options of [{ maxTokens: -1 }, { maxTokens: 1.5 }, { seed: -1 }, { seed: 1n << 64n }, { stops: [""] }, { stops: ["a\0"] },
      { stops: [3] }, { alternatives: 2 ** 30 }, { sampling: 3 }, { hot: true }, { sampling: { temperature: -1 } }, { sampling: { topP: NaN } }])
      await assert.rejects(talk.stream(prompt, options).read(), AerieError, String(Object.keys(options)));
    await rejects(talk.rewind(1.5), "ARGUMENT");
    await rejects(talk.cycle(), "ARGUMENT");
    assert.throws(() => model.detokenize([2 ** 40]), AerieError);
    assert.throws(() => model.detokenize("x"), AerieError);
    assert.throws(() => model.tokenBytes("x"), AerieError);
    assert.equal(typeof (await talk.stream("a\0b", { maxTokens: 2 }).read()), "string");
    for (const option of ["onProgress", "editLogits"]) {
      const answer = talk.stream(prompt + option, { maxTokens: 4, [option]: () => { throw new RangeError("mine"); } });
      await assert.rejects(answer.read(), RangeError);
      assert.equal(answer.finish, "cancelled");
    }
    await assert.rejects(open({ onProgress: () => { throw new RangeError("mine"); } }), RangeError);
    const forbidden = talk.stream(prompt, { maxTokens: 1, sampling: {} });
    await forbidden.read();
    const { id } = forbidden.tokens[0];
    const edited = talk.stream(prompt, { maxTokens: 6, sampling: {}, editLogits: (ids, logits) => { logits[id] = -Infinity; } });
    await edited.read();
    assert.ok(edited.tokens.every((token) => token.id !== id));
    const closing = talk.stream(prompt + "?", { maxTokens: 40, editLogits: () => model.close() });
    await closing.read().catch((error) => assert.equal(error.code, "CLOSED"));
    for (const call of [() => model.session(), () => model.load("x"), () => talk.stream("x").read(), () => talk.say("x").read(), () => talk.ids(),
      () => talk.cycle(), () => talk.rewind(0), () => talk.fork(), () => talk.save("x")])
      await rejects(call(), "CLOSED");
    for (const call of [() => model.tokenize("x"), () => model.render([]), () => model.tokenBytes(1)]) assert.throws(call, { code: "CLOSED" });
    talk.cancel();
    talk.close();
    model.close();
  },
  async closed_while_it_is_used() {
    for (let round = 0; round < 6; ++round) {
      const model = await open({ sessions: 3 });
      const users = Array.from({ length: 3 }, async () => {
        const talk = await model.session();
        while (true) await talk.stream(prompt, { maxTokens: 200, ignoreEos: true }).read();
      });
      await sleep(round * 15);
      model.close();
      for (const one of await Promise.allSettled(users)) assert.equal(one.reason?.code, "CLOSED", String(one.reason));
    }
  },
  async two_loops_over_one_answer() {
    const model = await open(), talk = await model.session();
    const answer = talk.stream(prompt, { maxTokens: 40, sampling: {} });
    const texts = await Promise.all([0, 1].map(async () => {
      let text = "";
      for await (const piece of answer) text += piece.text;
      return text;
    }));
    assert.equal(texts[0].length + texts[1].length, answer.text.length);
    await Promise.all([talk.stream("x", { maxTokens: 4 }).read(), talk.ids(), talk.rewind(1)].map((one) => one.catch(() => {})));
    model.close();
  },
  async garbage() {
    for (let round = 0; round < 3; ++round) {
      await (async () => {
        const answer = (await (await open()).session()).stream(prompt, { maxTokens: 5, editLogits: () => {} });
        await answer.next();
      })();
      for (let i = 0; i < 4; ++i) {
        globalThis.gc?.();
        await sleep(1);
      }
    }
  },
  the_end_of_the_process() {
    const start = `import { Model } from ${JSON.stringify(entry)};
      const model = await Model.open(${JSON.stringify(tiny)}, ${JSON.stringify(small)});
      const talk = await model.session();`;
    const long = "talk.stream('x', { maxTokens: 400, ignoreEos: true })";
    for (const [body, status] of [["", 0], [`${long}.read(); setTimeout(() => process.exit(0), 20);`, 0],
      [`${long}.read(); setTimeout(() => process.exit(3), 35);`, 3], [`for await (const piece of ${long}) break;`, 0],
      [`for await (const piece of ${long}) throw new Error("mine");`, 1], [`Model.open(${JSON.stringify(tiny)}); process.exit(0);`, 0]]) {
      const done = spawnSync(process.execPath, ["--input-type=module", "-e", start + body], { encoding: "utf8", timeout: 60000 });
      assert.deepEqual([done.status, done.signal], [status, null], body + done.stderr);
    }
  },
  async workers() {
    const { Worker } = await import("node:worker_threads");
    const code = `import { Model } from ${JSON.stringify(entry)};
      import { parentPort } from "node:worker_threads";
      const model = await Model.open(${JSON.stringify(tiny)}, ${JSON.stringify(small)});
      const talk = await model.session();
      parentPort.postMessage(await talk.stream("x", { maxTokens: 9, sampling: {} }).read());`;
    const file = path.join(folder, "worker.mjs");
    fs.writeFileSync(file, code);
    const said = await Promise.all([0, 1].map(() => new Promise((resolve, reject) => {
      const worker = new Worker(file);
      worker.on("message", resolve);
      worker.on("error", reject);
    })));
    assert.equal(said[0], said[1]);
  },
};

assert.ok(fileURLToPath(entry).endsWith("index.js"));
for (const [name, test] of Object.entries(tests)) {
  const before = performance.now();
  await test();
  console.log(`${name}: ${Math.round(performance.now() - before)} ms`);
}
