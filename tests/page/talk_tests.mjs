// Talks are kept: through a reload, "New chat", a second tab, and the end of the server.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { answered, open, say, serve, set, text } from "./surroundings.mjs";

const bodies = (page) => page.$$eval(".answer .body", (nodes) => nodes.map((node) => node.textContent));
const titles = (page) => page.$$eval(".talk .name", (nodes) => nodes.map((node) => node.textContent));
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function openTalks(page, count) {
  await page.click("#talks");
  await page.waitForFunction((count) => document.querySelectorAll(".talk").length === count, {}, count);
}

// Clicks a link below the talk of that number.
async function act(page, number, label) {
  await page.click(`#talks-list li:nth-child(${number}) .square`);
  await page.evaluate((number, label) =>
    [...document.querySelectorAll(`#talks-list li:nth-child(${number}) .link`)].find((link) => link.textContent === label).click(), number, label);
}

async function openTalk(page, number) {
  await page.click(`#talks-list li:nth-child(${number}) .talk`);
  await page.waitForSelector("#talks-dialog:not([open])");
}

async function downloaded(folder, name) {
  for (let left = 200; !readdirSync(folder).includes(name); await pause(25)) assert.ok(--left, `no ${name}: ${readdirSync(folder)}`);
  return readFileSync(folder + "/" + name, "utf8");
}

export async function talks(browser, { url }, folder) {
  const { page, faults, context, close } = await open(browser, url);
  await set(page, { "#max-tokens": 20, "#seed": 1 });
  await say(page, "What is 3 times 14? Tell me in words.");
  await answered(page, 1);
  const [first] = await bodies(page);
  await page.reload();
  await answered(page, 1);
  assert.deepEqual(await bodies(page), [first]);
  await page.click("#new");
  assert.deepEqual(await bodies(page), []);
  assert.match(await text(page, "#offer"), /^The talk is in the history\.Undo/);
  await page.click("#offer .link");
  await answered(page, 1);
  assert.deepEqual(await bodies(page), [first], "New chat is not undone");
  await page.click("#new");
  await say(page, "Another.");
  await answered(page, 1);
  assert.equal(await page.$eval("#offer", (node) => node.hidden), true);
  await openTalks(page, 2);
  assert.deepEqual(await titles(page), ["Another.", "What is 3 times 14? Tell me in words."]);
  const client = await page.createCDPSession();
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder, browserContextId: context.id });
  await act(page, 2, "JSON");
  const body = await downloaded(folder, "what-is-3-times-14-tell-me-in-words.json");
  const { messages } = JSON.parse(body);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant"]);
  const reply = await fetch(url + "/v1/chat/completions", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  assert.equal(reply.status, 200, "the API does not take what was exported");
  await page.evaluate(() => [...document.querySelectorAll(".acts:not([hidden]) .link")].find((link) => link.textContent === "Markdown").click());
  const markdown = await downloaded(folder, "what-is-3-times-14-tell-me-in-words.md");
  assert.ok(markdown.startsWith("# What is 3 times 14? Tell me in words.\n\naerie-tiny, 20"));
  assert.ok(markdown.includes("## You\n\nWhat is 3") && markdown.includes("## Answer\n\n" + messages[1].content.trim()), markdown);
  await page.evaluate(() => [...document.querySelectorAll(".acts:not([hidden]) .link")].find((link) => link.textContent === "Rename").click());
  await page.keyboard.type("Never");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelectorAll("#talks-dialog[open] .talk").length === 2);
  assert.equal((await titles(page))[1], "What is 3 times 14? Tell me in words.");
  await act(page, 2, "Rename");
  await page.keyboard.type("Multiplication");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".talk .name")[1]?.textContent === "Multiplication");
  await act(page, 2, "Delete");
  await page.waitForFunction(() => document.querySelectorAll(".talk").length === 1);
  await page.click("#talks-offer .link");
  await page.waitForFunction(() => document.querySelectorAll(".talk").length === 2);
  await openTalk(page, 2);
  await answered(page, 1);
  assert.deepEqual(await bodies(page), [first]);

  // Another tab goes on with the same talk.
  const other = await context.newPage();
  await other.goto(url + "/");
  await openTalks(other, 2);
  await openTalk(other, 2);
  await set(other, { "#max-tokens": 5 });
  await say(other, "From the other tab.");
  await answered(other, 2);
  await page.bringToFront();
  await say(page, "From the first tab.");
  await answered(page, 2);
  await page.waitForSelector("#offer:not([hidden])");
  assert.match(await text(page, "#offer"), /^Another tab went on with this talk\. Here it goes on as a copy\./);
  await openTalks(page, 3);
  assert.deepEqual((await titles(page)).slice(0, 2), ["Multiplication (copy)", "Multiplication"]);
  await openTalk(page, 2);
  await page.waitForFunction(() => /other tab/.test(document.querySelector(".turn:last-of-type .user")?.textContent));

  await openTalks(page, 3);
  await page.click("#delete-all");
  await page.click("#delete-keep");
  assert.equal((await titles(page)).length, 3);
  await page.click("#delete-all");
  await page.click("#delete-yes");
  await page.waitForFunction(() => document.querySelectorAll(".talk").length === 0);
  await page.keyboard.press("Escape");
  assert.deepEqual(await bodies(page), []);
  await page.reload();
  await openTalks(page, 0);
  await page.keyboard.press("Escape");

  // A reload in the middle of an answer keeps what has come.
  await page.evaluate(() => (test.more = { ignore_eos: true, max_tokens: 2000 }));
  await say(page, "Say a lot.");
  await page.waitForFunction(() => document.querySelector(".body")?.textContent.length > 100);
  await page.reload();
  await answered(page, 1);
  assert.ok((await bodies(page))[0].length > 100);
  assert.equal(await text(page, ".notes"), "The page was left before the answer was whole.");
  await openTalks(page, 1);
  assert.deepEqual(faults, []);
  await close();
}

// The server ends in the middle of an answer, and another one comes in its place.
export async function killed(browser, program, flags) {
  const server = await serve(program, flags);
  const { page, faults, context, close } = await open(browser, server.url);
  const state = (name, word) => page.waitForFunction((name, word) =>
    document.querySelector("#model").dataset.state === name && document.querySelector("#state").textContent === word, {}, name, word);
  await state("ready", "ready");
  await page.evaluate(() => (test.more = { ignore_eos: true }));
  await say(page, "Say a lot.");
  await state("answering", "answering");
  await page.waitForFunction(() => document.querySelector(".body")?.textContent.length > 100);
  await server.stop();
  await answered(page, 1);
  const [said] = await bodies(page);
  assert.match(await text(page, ".notes"), /^The connection to the server broke before the answer was whole\.$/);
  await state("failed", "unreachable");
  await say(page, "Are you there?");
  await answered(page, 2);
  assert.equal(await text(page, ".turn:last-of-type .notes"), "The server cannot be reached.");
  const next = await serve(program, [...flags, "--alias", "another"], new URL(server.url).port);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await state("ready", "ready");
  assert.equal(await text(page, "#model-name"), "another");
  await page.reload();
  await answered(page, 2);
  assert.ok(said.length > 100);
  assert.deepEqual(await bodies(page), [said, ""]);
  const other = await context.newPage();
  await other.goto(server.url + "/");
  await openTalks(other, 1);
  await openTalk(other, 1);
  await answered(other, 2);
  assert.deepEqual(await bodies(other), [said, ""], "the history lacks what was received");
  // Chromium reports each connection that fails.
  assert.deepEqual(faults.filter((fault) => !/Failed to load resource/.test(fault)), []);
  await close();
  await next.stop();
}

// Where the browser keeps nothing, the page works and says so once.
export async function refused_history(browser, { url }) {
  const { faults, context, close } = await open(browser, url);
  const other = await context.newPage();
  await other.evaluateOnNewDocument(() =>
    Object.defineProperty(window, "indexedDB", { value: { open() { throw new DOMException("not here", "SecurityError"); } } }));
  await other.goto(url + "/");
  await other.waitForSelector("#offer:not([hidden])");
  assert.match(await text(other, "#offer"), /^This browser keeps no history here: a talk goes when its tab is closed\./);
  await set(other, { "#max-tokens": 5 });
  for (let i = 1; i <= 2; ++i) {
    await say(other, "Hello.");
    await answered(other, i);
    assert.equal(await other.$eval("#offer", (node) => node.hidden), true);
  }
  const before = await bodies(other);
  await other.click("#new");
  await other.click("#offer .link");
  await answered(other, 2);
  assert.deepEqual(await bodies(other), before);
  await other.reload();
  await answered(other, 2);
  assert.deepEqual(await bodies(other), before);
  assert.equal(await other.$eval("#offer", (node) => node.hidden), true, "it is said more than once");
  assert.deepEqual(faults, []);
  await close();
}
