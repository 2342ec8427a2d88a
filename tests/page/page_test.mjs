// The chat page in Chromium, with real servers.
//   page_test.mjs PROGRAM REPOSITORY [FOLDER]
// FOLDER gets screenshots for a person to look at. Exit status 77: Chromium or its driver is not installed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { begun_thought, reading, settings_and_shades, thoughts_formulas_code } from "./answer_tests.mjs";
import { kHostile, kPlain, kTiring, pieces } from "./hostile.mjs";
import { answered, browserOrSkip, findings, open, say, serve, set, text } from "./surroundings.mjs";
import { killed, refused_history, talks } from "./talk_tests.mjs";

const [program, repository, pictures] = process.argv.slice(2);
const kMostWriting = 20;
// A fixed tree: on a busy machine a tree that is sized by measured costs may be empty.
const kTiny = ["-m", path.join(repository, "models", "aerie-tiny"), "--tree", "20,4,5"];
const browser = await browserOrSkip();
const folder = mkdtempSync(path.join(tmpdir(), "aerie_page_"));

const answerTexts = (page) => page.$$eval(".answer .markdown", (nodes) => nodes.map((node) => node.textContent));
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("href"));
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function picture(page, name) {
  if (!pictures) return;
  await pause(400);
  await page.screenshot({ path: path.join(pictures, name + ".png") });
}

async function chatOfApi(url, body) {
  const reply = await fetch(url + "/v1/chat/completions", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return (await reply.json()).choices[0].message.content;
}

const kQuestions = ["What is 3 times 14?", "How many apples are that?"];

// Two turns with the keyboard alone, then retry, edit and a reload.
async function conversation({ url }) {
  const { page, faults, close } = await open(browser, url);
  await set(page, { "#seed": 7, "#temperature": 0.6, "#max-tokens": 60 });
  assert.equal(await focused(page), "settings", "focus does not come back from a dialog");
  const messages = [];
  for (const [i, question] of kQuestions.entries()) {
    await say(page, question);
    await answered(page, i + 1);
    const said = (await page.evaluate(() => JSON.parse(sessionStorage.aerie))).conversation.turns[i].text;
    messages.push({ role: "user", content: question });
    assert.equal(said, await chatOfApi(url, { messages, seed: 7, temperature: 0.6, max_tokens: 60 }));
    messages.push({ role: "assistant", content: said });
  }
  assert.match(await text(page, ".turn:last-of-type .foot .numbers"), /tokens\/s · τ \d.* read before · seed 7/);
  const { name } = (await page.evaluate(() => JSON.parse(sessionStorage.aerie))).conversation;
  assert.match(name, /^[\w-]{20,}$/, "the page does not keep the conversation's name");
  assert.ok(await page.$$eval(".answer [data-depth]", (spans) => spans.length) > 5, "nothing is drafted");
  const before = await answerTexts(page);
  await page.click(".retry");
  await answered(page, 2);
  assert.deepEqual(await answerTexts(page), before, "the same seed gave another text");
  await page.reload();
  await answered(page, 2);
  assert.deepEqual(await answerTexts(page), before, "a reload changed the conversation");
  await page.focus("#prompt");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.$eval("#prompt", (area) => area.value), kQuestions[1]);
  await page.keyboard.type(" And pears?");
  await page.keyboard.press("Enter");
  await answered(page, 2);
  assert.match(await text(page, ".turn:last-of-type .user"), /And pears\?$/);
  await page.click("#new");
  assert.equal((await answerTexts(page)).length, 0);
  assert.deepEqual(faults, []);
  await close();
}

// Tab reaches every control in the order of the page; each shows its focus and works.
async function keyboard({ url }) {
  const { page, faults, close } = await open(browser, url);
  const seen = [];
  await page.focus(".skip");
  for (let i = 0; i < 14; ++i) {
    const name = await focused(page);
    seen.push(name);
    const outline = await page.evaluate(() => {
      const style = getComputedStyle(document.activeElement);
      return style.outlineStyle !== "none" || getComputedStyle(document.activeElement.parentNode).boxShadow !== "none";
    });
    if (i > 0) assert.ok(outline, name + " does not show its focus");
    await page.keyboard.press("Tab");
  }
  const order = ["#prompt", "#chat", "#race", "model", "two", "talks", "new", "theme", "settings", "log", "prompt", "send", "shade", "draft"];
  assert.deepEqual(seen, order);
  await page.focus("#draft");
  await page.keyboard.press("Space");
  assert.equal(await page.$eval("#draft", (box) => box.checked), false);
  await page.focus("#model");
  await page.keyboard.press("Enter");
  assert.match(await text(page, "#model-dialog dl"), /aerie-tiny.*Context2.048 tokens.*Drafter/);
  await page.keyboard.press("Escape");
  assert.equal(await page.$eval("#model-dialog", (dialog) => dialog.open), false);
  await page.focus("#prompt");
  await page.keyboard.type("one");
  await page.keyboard.down("Shift");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Shift");
  await page.keyboard.type("two");
  assert.equal(await page.$eval("#prompt", (area) => area.value), "one\ntwo");
  await page.keyboard.press("Enter");
  await answered(page, 1);
  assert.equal(await page.$$eval(".answer [data-depth]", (spans) => spans.length), 0, "drafted although it is switched off");
  assert.deepEqual(faults, []);
  await close();
}

// Two chats ask at the same time; each keeps its own conversation, also over a reload.
async function two_chats({ url }) {
  const { page, faults, close } = await open(browser, url);
  await set(page, { "#seed": 7, "#temperature": 0, "#max-tokens": 60 });
  await page.click("#two");
  const framed = async () => {
    const frame = await (await page.waitForSelector("#beside:not([hidden])")).contentFrame();
    await frame.waitForSelector("#prompt");
    return frame;
  };
  let frame = await framed();
  assert.equal(await frame.$eval("nav", (node) => getComputedStyle(node).display), "none");
  await frame.type("#prompt", kQuestions[1]);
  await page.type("#prompt", kQuestions[0]);
  await frame.$eval("#composer", (form) => form.requestSubmit());
  await page.keyboard.press("Enter");
  await answered(page, 1);
  await answered(frame, 1);
  const left = await answerTexts(page), right = await answerTexts(frame);
  assert.equal(left[0], await chatOfApi(url, { messages: [{ role: "user", content: kQuestions[0] }], temperature: 0, max_tokens: 60 }));
  assert.equal(await text(frame, ".user"), kQuestions[1]);
  await picture(page, "two-chats");
  const widths = await page.evaluate(() => ["#chat-view", "#beside"].map((id) => document.querySelector(id).getBoundingClientRect().width));
  assert.ok(Math.abs(widths[0] - widths[1]) < 4, "not side by side: " + widths);
  await page.click("#theme");
  await frame.waitForFunction(() => document.documentElement.dataset.colours === "dark");
  await page.reload();
  frame = await framed();
  await answered(page, 1);
  await answered(frame, 1);
  assert.deepEqual([await answerTexts(page), await answerTexts(frame)], [left, right], "a reload changed a conversation");
  assert.deepEqual(await findings(page), []);
  await page.click("#two");
  assert.equal(await page.$eval("#beside", (node) => node.hidden), true);
  assert.deepEqual(faults, []);
  await close();
}

async function race({ url }) {
  const { page, faults, close } = await open(browser, url);
  await page.goto(url + "/#race");
  await page.type("#race-prompt", "Tell me a long story about a dog.");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#verdict[data-equal]");
  assert.equal(await page.$eval("#verdict", (node) => node.dataset.equal), "true");
  assert.match(await text(page, "#verdict"), /^\d.*× as fast with drafts \(median of 3 rounds, [\d.]+ to [\d.]+\).*Texts equal, all [\d\u202f]+ bytes compared$/);
  const asked = await page.evaluate(() => test.asked.map(({ seed, draft, messages }) => ({ seed, draft, messages })));
  assert.equal(asked.length, 7, "the prompt, and three rounds of two");
  for (let i = 1; i < 7; i += 2) {
    assert.deepEqual(asked[i], { ...asked[2], draft: false });
    assert.deepEqual(asked[i + 1], { ...asked[2], draft: true });
  }
  const [plain, drafted] = await page.$$eval(".lane .text", (nodes) => nodes.map((node) => node.textContent));
  assert.ok(plain.length > 50 && plain === drafted);
  const numbers = await page.$$eval(".lane .numbers dd", (nodes) => nodes.map((node) => node.textContent));
  assert.ok(numbers[2] <= "1.00" && numbers[5] > "1.00", "τ of the lanes: " + numbers);
  await picture(page, "race");
  await page.click("#replay");
  await page.waitForFunction(() => document.querySelectorAll(".lane.running").length === 0 && !document.querySelector("#race-stop:not([hidden])"));
  assert.deepEqual(await page.$$eval(".lane .text", (nodes) => nodes.map((node) => node.textContent)), [plain, drafted]);
  assert.deepEqual(faults, []);
  await close();
  return "tokens/s, tokens, τ: " + numbers.join(" ");
}

// A conversation outgrows its context: the oldest turns are dropped and the conversation continues.
async function full_context() {
  const server = await serve(program, [...kTiny, "-c", "256"]);
  const { page, faults, close } = await open(browser, server.url);
  await set(page, { "#max-tokens": 50, "#seed": 3 });
  for (let i = 1; i <= 6; ++i) {
    await say(page, "Tell me more about the number " + i + " and about what is special with it.");
    await answered(page, i);
  }
  assert.match(await text(page, "#dropped"), /^The context of 256 tokens is full: the model does not read the oldest/);
  assert.ok(await page.$$eval(".turn.dropped", (turns) => turns.length) > 0);
  await set(page, { "#max-tokens": "" });
  await page.evaluate(() => (test.more = { ignore_eos: true }));
  await say(page, "Go on for ever.");
  await answered(page, 7);
  assert.match(await text(page, ".turn:last-of-type .notes"), /^The context is full: the answer ends here\./);
  await page.$eval("#prompt", (area) => (area.value = "much too long ".repeat(300)));
  await say(page, "");
  await answered(page, 8);
  assert.match(await text(page, ".turn:last-of-type .notes"), /^This message is too long: it makes .* tokens/);
  await page.evaluate(() => (test.more = {}));
  await page.click(".actions .last");
  await page.$eval("#prompt", (area) => (area.value = ""));
  await say(page, "A short one.");
  await answered(page, 8);
  assert.deepEqual(faults, []);
  await close();
  server.stop();
}

async function hostile({ url }) {
  const { page, faults, close } = await open(browser, url);
  for (const [i, said] of [kHostile, kTiring, kPlain].entries()) {
    await page.evaluate((answer) => test.answers.push(answer), pieces(said));
    await say(page, i === 0 ? kHostile.slice(0, 200).replaceAll("\n", " ") : "go on");
    await answered(page, i + 1);
  }
  await page.reload();
  await answered(page, 3);
  for (const link of await page.$$(".answer a")) await link.evaluate((node) => node.removeAttribute("target"));
  const found = await page.evaluate(() => {
    const within = [...document.querySelectorAll(".turn *")];
    const attributes = [...new Set(within.flatMap((node) => node.getAttributeNames()))];
    const tags = [...new Set(within.map((node) => node.localName))];
    const links = within.filter((node) => node.localName === "a").map((node) => node.protocol);
    return { hit: window.hit, attributes, tags, links: [...new Set(links)] };
  });
  assert.equal(found.hit, undefined, "a script of the model's ran");
  assert.deepEqual(found.links.sort(), ["http:", "https:"]);
  assert.deepEqual(found.attributes.filter((name) => name.startsWith("on") || ["src", "srcset", "action", "srcdoc"].includes(name)), []);
  assert.deepEqual(found.tags.filter((tag) => /^(script|img|iframe|svg|style|form|input|base|meta|object|embed)$/.test(tag)), []);
  assert.equal(await page.$$eval(".turn:nth-of-type(4) :is(table, ol, pre, blockquote, h3, strong, em)", (nodes) => nodes.length), 9);
  const policy = (await page.goto(url + "/")).headers()["content-security-policy"];
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.deepEqual(faults, []);
  await close();
}

// Runs a long answer. Work that grows with the length of the answer shows in how often the page writes each character:
// a block is written once, but for the one at the end, which is written in each drawing. Times are printed, not judged.
async function longest(url, prepare) {
  const { page, faults, close } = await open(browser, url);
  await prepare(page);
  await page.evaluate(() => (test.longest = test.drawn = 0));
  await say(page, "Say a lot.");
  await answered(page, 1, 900_000);
  const { longest, drawn, length } = await page.evaluate(() => ({ ...test, length: document.querySelector("#turns").textContent.length }));
  assert.match(await text(page, ".foot .numbers"), /\b10\u202f000 tokens/);
  await pause(200);
  const below = await page.$eval("#log", (log) => log.scrollHeight - log.scrollTop - log.clientHeight);
  assert.ok(below < 60, `the page did not follow the answer: ${below} pixels below`);
  assert.deepEqual(faults, []);
  await close();
  const told = `each character written ${(drawn / length).toFixed(1)} times, longest task: ${longest ? longest + " ms" : "below 50 ms"}`;
  assert.ok(drawn >= length && drawn <= kMostWriting * length, told);
  return told;
}

const ten_thousand = (server) =>
  longest(server.url, async (page) => {
    await set(page, { "#max-tokens": 10000 });
    await page.evaluate(() => (test.more = { ignore_eos: true }));
  });

// The same, with mostly drafted tokens and all of Markdown.
const ten_thousand_drafted = (server) =>
  longest(server.url, (page) => page.evaluate((answer) => test.answers.push(answer), pieces(kPlain.repeat(52)).slice(0, 10000)));

async function stops(server) {
  const { page, faults, close } = await open(browser, server.url);
  await page.evaluate(() => (test.more = { ignore_eos: true }));
  for (const [i, stop] of [() => page.keyboard.press("Escape"), () => page.click("#stop")].entries()) {
    await say(page, "Say a lot.");
    await page.waitForFunction((i) => document.querySelectorAll(".answer")[i]?.textContent.length > 100, {}, i);
    await stop();
    await answered(page, i + 1, 5000);
    assert.equal(await text(page, ".turn:last-of-type .notes"), "Stopped.");
    assert.equal(await focused(page), "prompt");
  }
  for (let left = 100; /aerie_requests_running [1-9]/.test(await (await fetch(server.url + "/metrics")).text()); await pause(50))
    assert.ok(--left, "the server goes on with a stopped answer");
  assert.deepEqual(faults, []);
  await close();
}

// Nothing may be wider than the window. Takes screenshots for a person to look at.
async function sizes({ url }) {
  for (const scheme of ["light", "dark"]) {
    for (const [width, height] of [[1280, 800], [390, 844]]) {
      const { page, faults, close } = await open(browser, url, { width, height, scheme });
      const name = (what) => [what, scheme, width].join("-");
      // Each scheme and each width once.
      const look = async (what) => {
        await picture(page, name(what));
        if ((scheme === "light") === (width === 1280)) assert.deepEqual(await findings(page), [], name(what));
      };
      await picture(page, name("welcome"));
      await page.evaluate((answer) => test.answers.push(answer), pieces(kPlain));
      await say(page, "Why is the sky blue? Answer briefly, with a table.");
      await answered(page, 1);
      await page.click("#shade");
      await look("chat");
      await page.hover("#log");
      await page.mouse.wheel({ deltaY: -9000 });
      await page.waitForSelector("#newest:not([hidden])");
      await picture(page, name("chat-top"));
      for (const [button, dialog] of [["#settings", "settings"], ["#model", "model"], ["#talks", "talks"]]) {
        await page.click(button);
        await page.waitForFunction(() => !document.getAnimations().length);
        await look(dialog);
        await page.keyboard.press("Escape");
      }
      await page.goto(url + "/#race");
      await page.type("#race-prompt", "What is 3 times 14?");
      await page.click("#race-start");
      await page.waitForSelector("#verdict[data-equal=true]");
      await picture(page, name("race"));
      const below = await page.$eval(".lanes", (lanes) => lanes.getBoundingClientRect().bottom - innerHeight);
      assert.ok(below <= 0, `lanes of the race end ${below} pixels below the window`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "too wide at " + width);
      assert.deepEqual(faults, []);
      await close();
    }
  }
}

// The bundled model with a chat template that begins a thought.
function thinking_model() {
  const made = path.join(folder, "thinking"), file = path.join(made, "tokenizer_config.json");
  cpSync(path.join(repository, "models", "aerie-tiny"), made, { recursive: true });
  const config = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...config, chat_template: "{{ messages[-1].content }}<think>\n" }));
  return made;
}

const kTalkTests = [
  function thoughts_formulas_and_code(server) { return thoughts_formulas_code(browser, server); },
  function settings(server) { return settings_and_shades(browser, server); },
  function reading_counts(server) { return reading(browser, server); },
  function history(server) { return talks(browser, server, path.join(folder, "downloads")); },
  function no_history(server) { return refused_history(browser, server); },
  function server_that_ends() { return killed(browser, program, kTiny); },
];

async function run(test, server) {
  const start = Date.now(), told = await test(server);
  console.log(`${test.name}: ${((Date.now() - start) / 1000).toFixed(1)} s${told ? ", " + told : ""}`);
}

const servers = [];
try {
  servers.push(await serve(program, kTiny));
  mkdirSync(path.join(folder, "downloads"));
  for (const test of kTalkTests) await run(test, servers[0]);
  servers.push(await serve(program, ["-m", thinking_model(), "--draft", "none"]));
  await run(function begun_thoughts(server) { return begun_thought(browser, server); }, servers.at(-1));
  for (const test of [conversation, keyboard, two_chats, race, hostile, sizes, ten_thousand_drafted]) await run(test, servers[0]);
  await run(full_context);
  const random = path.join(folder, "random");
  execFileSync(program, ["synth", "--like", "llama-3.1-8b", "--hidden", "64", "--intermediate", "128", "--layers", "2",
                         "--heads", "2", "--kv-heads", "1", "--vocab", "4096", "-o", random, "-q"]);
  servers.push(await serve(program, ["-m", random, "-c", "16384", "--keep", "0", "--parallel", "1"]));
  for (const test of [stops, ten_thousand]) await run(test, servers.at(-1));
} finally {
  for (const server of servers) server.stop();
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
