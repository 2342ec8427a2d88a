// A server and a browser for the page's tests.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export const kSkipped = 77;
const kChromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function skip(reason) {
  console.log("skipped: " + reason);
  process.exit(kSkipped);
}

export async function browserOrSkip() {
  const executablePath = process.env.CHROMIUM ?? kChromium.find(existsSync);
  if (!executablePath) skip("there is no Chromium here (scripts/setup.sh --web)");
  const puppeteer = await import("puppeteer-core").catch(() => skip("npm ci was not run in tests/page"));
  const args = ["--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"];
  if (process.getuid() === 0) args.push("--no-sandbox");  // Chromium has no sandbox for root
  return puppeteer.default.launch({ executablePath, args, headless: true, protocolTimeout: 600_000 });
}

// Starts `aerie serve`. Returns {url, stop()}; the promise of stop() waits until it has gone.
export async function serve(program, flags, port = 0) {
  const variables = Object.entries(process.env).filter(([name]) => !/^(AERIE|HF)_/.test(name));
  const cache = path.join(tmpdir(), "aerie_test_cache");
  const env = { ...Object.fromEntries(variables), AERIE_DEVICE: "cpu", XDG_CACHE_HOME: cache };
  const child = spawn(program, ["serve", "--port", String(port), "-t", "1", ...flags], { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const url = await new Promise((found, failed) => {
    child.stderr.on("data", (data) => {
      said += data;
      const at = / at (http:\S+)\n/.exec(said);
      if (at) found(at[1]);
    });
    child.once("exit", () => failed(new Error("the server ended: " + said)));
  });
  const gone = new Promise((done) => child.on("exit", done));
  return { url, stop: () => child.kill("SIGKILL") && gone };
}

// Runs in the page before its own script. `test.more` is added to each completion request. If `test.answers` is not
// empty, its first element, [{text, depth}, ...], replaces the server's stream. A piece may be {thought}, told apart from
// the answer, or {comment}, a line that is no event. Such a stream waits where `test.until` pieces have come.
function prepare() {
  const test = (window.test = { more: {}, answers: [], asked: [], longest: 0, drawn: 0, until: Infinity });
  // The characters that the page wrote into the conversation, each as often as it was written.
  const observer = new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes)
      for (const node of type === "characterData" ? [target] : addedNodes) test.drawn += node.textContent.length;
  });
  addEventListener("DOMContentLoaded", () =>
    observer.observe(document.querySelector("#turns"), { childList: true, subtree: true, characterData: true }));
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) test.longest = Math.max(test.longest, entry.duration);
  }).observe({ type: "longtask", buffered: true });
  const event = (choice) => "data: " + JSON.stringify({ choices: [{ index: 0, ...choice }] }) + "\n\n";
  const streamOf = (pieces) => {
    const encoder = new TextEncoder(), each = Math.max(5, Math.ceil(pieces.length / 2000));
    let next = 0;
    return new ReadableStream({
      async pull(controller) {
        await new Promise((done) => setTimeout(done, 1));
        while (next >= test.until) await new Promise((done) => setTimeout(done, 10));
        const cycle = pieces.slice(next, Math.min(next + each, test.until));
        next += cycle.length;
        for (const { thought, comment } of cycle) {
          if (comment) controller.enqueue(encoder.encode(": " + comment + "\n\n"));
          if (thought) controller.enqueue(encoder.encode(event({ delta: { reasoning_content: thought } })));
        }
        const told = cycle.filter(({ text }) => text !== undefined).map(({ text, depth }) => ({ text, depth, from: depth ? "draft" : "target" }));
        if (!told.length && next < pieces.length) return;
        const aerie = { pieces: told, tokens: next, tau: 3.4, tokens_per_second: 123.4, seed: 5 };
        const finish_reason = next < pieces.length ? null : "stop";
        controller.enqueue(encoder.encode(event({ delta: {}, finish_reason, aerie })));
        if (!finish_reason) return;
        controller.enqueue(encoder.encode("data: [DONE]\n\n"));
        controller.close();
      },
    });
  };
  const original = window.fetch;
  window.fetch = (path, options) => {
    if (!/completions$/.test(path)) return original(path, options);
    const body = { ...JSON.parse(options.body), ...test.more };
    test.asked.push(body);
    if (test.answers.length)
      return Promise.resolve(new Response(streamOf(test.answers.shift()), { headers: { "Content-Type": "text/event-stream" } }));
    return original(path, { ...options, body: JSON.stringify(body) });
  };
}

// Opens a page of that server. `faults` collects events that must never happen.
export async function open(browser, url, { width = 1280, height = 800, scheme = "light" } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && faults.push("console: " + message.text()));
  page.on("pageerror", (error) => faults.push("exception: " + error.message));
  page.on("dialog", (dialog) => faults.push("dialog: " + dialog.message()) && dialog.dismiss());
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(url + "/") && !asked.startsWith("data:")) faults.push("request: " + asked);
  });
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.evaluateOnNewDocument(prepare);
  await page.goto(url + "/", { waitUntil: "load" });
  await page.waitForSelector("#model[data-state]");
  page.setDefaultTimeout(120_000);
  return { page, faults, context, close: () => context.close() };
}

// Each finding of axe-core about the page as it is shown, in a line.
export async function findings(page) {
  const { source } = (await import("axe-core").catch(() => skip("npm ci was not run in tests/page"))).default;
  if (!(await page.evaluate("window.axe !== undefined"))) await page.evaluate(source + ";0");
  return page.evaluate(async () => (await axe.run()).violations.map(({ id, nodes }) =>
    id + ": " + nodes.map(({ target, any }) => target.join(" ") + " " + (any[0]?.message ?? "")).slice(0, 3).join(" | ")));
}

export const text = (page, selector) => page.$eval(selector, (node) => node.textContent);

// Waits until `count` answers are complete and none is being written.
export async function answered(page, count, timeout = 120_000) {
  await page.waitForFunction(
    (count) => document.querySelectorAll(".answer").length === count && !document.querySelector("[aria-busy]") &&
      document.querySelectorAll(".answer .foot .link:not(.last)").length === count,
    { timeout, polling: 100 }, count);
}

export async function say(page, words) {
  await page.focus("#prompt");
  await page.keyboard.type(words);
  await page.keyboard.press("Enter");
}

// Sets fields of the settings by typing, as a user does.
export async function set(page, values) {
  await page.click("#settings");
  for (const [selector, value] of Object.entries(values)) {
    await page.$eval(selector, (field) => field.select());
    await page.keyboard.press("Backspace");
    if (value !== "") await page.type(selector, String(value));
  }
  await page.keyboard.press("Escape");
}
