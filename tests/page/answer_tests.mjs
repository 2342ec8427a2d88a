// How the page shows thoughts, formulas and code, and what it says while it waits.
import assert from "node:assert/strict";
import { pieces } from "./hostile.mjs";
import { answered, findings, open, say, set, text } from "./surroundings.mjs";

export const kFormulas = ["\\(x^2_1 * y_1 * z\\)", "\\[\n\\int_0^1 x \\, dx = \\frac{1}{2}\n- \\epsilon_1\n# b\n\\]", "$a_1 * b_2$",
  "$$\\sum_{i=1}^n i$$", "$n$", "$|x|$"];
export const kRich = `<think>
The user asks for **much**.

- first \\(a_b\\)
</think>

#### A heading of level four

So ${kFormulas[0]} and then

${kFormulas[1]}
where ${kFormulas[2]} and ${kFormulas[3]} for the ${kFormulas[4]}th; it costs $5 and $6, or US$7, or $8-$9, \`$PATH:$HOME\`, *emphasis*.
I have $5 and you have 6$. A \`<think>\` is a tag. \\[ is not closed.

| a | b |
|---|---|
| ${kFormulas[5]} | c |

# The largest heading

\`\`\`python
# A "comment"
def f(a=1_000, b=0x1f):
    """Two
    lines # here"""
    return f'{a} \\' # {b}' + str(None)
\`\`\`

\`\`\`cpp
/* two
   lines */ #include <x>
int main() { return "//" == 'c'; }  // end
\`\`\`

\`\`\`html
<!-- a --><a href="x">b "c" if</a>
\`\`\`

\`\`\`nothing
if "this" is # plain
\`\`\`
`;
// [language, kind, texts that have it].
const kColours = [
  ["python", "comment", ["# A \"comment\""]],
  ["python", "string", ["\"\"\"Two\n    lines # here\"\"\"", "'{a} \\' # {b}'"]],
  ["python", "keyword", ["def", "return", "None"]],
  ["python", "number", ["1_000", "0x1f"]],
  ["cpp", "comment", ["/* two\n   lines */", "// end"]],
  ["cpp", "string", ["\"//\"", "'c'"]],
  ["cpp", "keyword", ["#include", "int", "return"]],
  ["html", "comment", ["<!-- a -->"]],
  ["html", "keyword", ["<a", ">", "</a>"]],
  ["html", "string", ["\"x\""]],
];

// The texts of one kind in the code of a language; neighbouring spans are one.
const coloured = (page, language, kind) =>
  page.$$eval(".code", (blocks, language, kind) => {
    const block = blocks.find((block) => block.querySelector(".bar span").textContent === language);
    const texts = [];
    let isOpen = false;
    const walk = (node) => {
      if (node.nodeType === Node.TEXT_NODE) {
        const is = node.parentNode.className === "code-" + kind;
        if (is && isOpen) texts[texts.length - 1] += node.data;
        else if (is) texts.push(node.data);
        // A line break between two spans of a comment belongs to no span.
        else if (isOpen && /^\n$/.test(node.data) && node.parentNode.localName === "code") return void (texts[texts.length - 1] += "\n");
        isOpen = is;
      } else node.childNodes.forEach(walk);
    };
    walk(block.querySelector("pre"));
    return texts.map((text) => text.trimEnd());
  }, language, kind);

const levels = (page) => page.$$eval("h1, h2, h3, h4, h5, h6", (nodes) =>
  nodes.filter((node) => node.checkVisibility()).map((node) => Number(node.localName[1])));

export async function thoughts_formulas_code(browser, { url }) {
  const { page, faults, close } = await open(browser, url);
  const parts = pieces(kRich), within = parts.findIndex((_, i) => parts.slice(0, i).map(({ text }) => text).join("").includes("much"));
  await page.evaluate((answer, until) => Object.assign(test, { answers: [answer], until }), parts, within);
  await say(page, "Think.");
  await page.waitForFunction(() => /much/.test(document.querySelector(".thought .markdown")?.textContent));
  assert.match(await text(page, ".thought summary"), /^Thinking …/);
  assert.equal(await page.$eval(".thought", (node) => node.open), false, "thoughts are not folded");
  assert.equal(await page.$$eval(".body > .markdown", (nodes) => nodes.length), 0, "a thought is shown as the answer");
  await page.click(".thought summary");
  await page.evaluate(() => (test.until = Infinity));
  await answered(page, 1);
  const check = async (when) => {
    assert.match(await text(page, ".thought summary"), /^Thought for \d+ s$/, when);
    assert.doesNotMatch(await text(page, ".body"), /<think>\n|<\/think>/, when);
    const formulas = await page.$$eval(".body > .markdown .formula", (nodes) => nodes.map((node) => node.textContent.trim()));
    assert.deepEqual(formulas, kFormulas, when);
    const body = await text(page, ".body > .markdown");
    for (const part of ["$5 and $6, or US$7, or $8-$9, $PATH:$HOME, emphasis", "$5 and you have 6$", "A <think> is a tag. \\[ is not closed."])
      assert.ok(body.includes(part), when + ": " + part);
    for (const [language, kind, texts] of kColours) assert.deepEqual(await coloured(page, language, kind), texts, [when, language, kind].join(" "));
    assert.equal(await page.$$eval(".code:last-of-type pre [class^=code-]", (nodes) => nodes.length), 0);
    const shown = await levels(page);
    shown.forEach((level, i) => assert.ok(i === 0 ? level === 1 : level <= shown[i - 1] + 1, `${when}: headings leave out a level: ${shown}`));
    assert.ok(shown.length >= 4);
  };
  await check("streamed");
  assert.equal(await page.$eval(".thought", (node) => node.open), true, "a thought that the user opened was folded");
  assert.deepEqual(await findings(page), []);
  await page.evaluate(() => test.answers.push([{ thought: "Told " }, { thought: "apart." }, { text: "Well.", depth: 0 }]));
  await say(page, "And now?");
  await answered(page, 2);
  const [, before] = await page.evaluate(() => test.asked.at(-1).messages);
  assert.deepEqual(before, { role: "assistant", content: kRich.replace(/ +$/, "") }, "thoughts go back to the model's template");
  const apart = () => page.$$eval(".turn:last-of-type .body > *", (nodes) => nodes.map((node) => [node.localName, node.lastChild.textContent]));
  assert.deepEqual(await apart(), [["details", "Told apart."], ["div", "Well."]]);
  await page.reload();
  await answered(page, 2);
  await check("after a reload");
  assert.deepEqual(await apart(), [["details", "Told apart."], ["div", "Well."]]);
  assert.deepEqual(faults, []);
  await close();
}

// A template may begin the thought itself; the server tells.
export async function begun_thought(browser, { url }) {
  const { page, faults, close } = await open(browser, url);
  await set(page, { "#max-tokens": 8 });
  await say(page, "Hello.");
  await answered(page, 1);
  const parts = await page.$$eval(".body > *", (nodes) => nodes.map((node) => node.className));
  assert.deepEqual(parts, ["thought"]);
  assert.deepEqual(faults, []);
  await close();
}

const kSettings = { temperature: 0.5, top_p: 0.9, top_k: 40, min_p: 0.05, repetition_penalty: 1.1, frequency_penalty: 0.2,
                    presence_penalty: -0.3, max_tokens: 7, seed: 11 };

export async function settings_and_shades(browser, { url }) {
  const { page, faults, context, close } = await open(browser, url);
  const field = (name) => "#" + name.replaceAll("_", "-");
  const shown = await page.evaluate((fields) => fields.map((field) => document.querySelector(field).placeholder), Object.keys(kSettings).map(field));
  assert.deepEqual(shown, ["0", "0.95", "0, off", "0, off", "1, off", "0, off", "0, off", "context", "random"]);
  await set(page, Object.fromEntries(Object.entries(kSettings).map(([name, value]) => [field(name), value])));
  await say(page, "Hello.");
  await answered(page, 1);
  const asked = await page.evaluate(() => test.asked.at(-1));
  for (const [name, value] of Object.entries(kSettings)) assert.equal(asked[name], value, name);
  assert.deepEqual(await page.$$eval(".answer .notes .note", (notes) => notes.map((note) => note.textContent).filter((text) => /^Ended|support/.test(text))),
                   ["Ended after 7 tokens, as the settings say."]);
  const isShaded = (page) => page.$eval("html", (node) => node.dataset.shade === "true");
  const legend = (page) => page.$eval("#legend", (node) => node.checkVisibility() && node.textContent.trim());
  assert.equal(await isShaded(page), false, "a reader did not ask for shades");
  assert.equal(await legend(page), false);
  await page.click("#shade");
  assert.equal(await legend(page), "drafted; the deeper in the tree, the stronger");
  const other = await context.newPage();
  await other.goto(url + "/");
  assert.ok(await isShaded(other), "the choice is not remembered");
  assert.deepEqual(faults, []);
  await close();
}

export async function reading(browser, { url }) {
  const { page, faults, close } = await open(browser, url);
  // The server's own counts, as they come.
  await page.evaluate(() => {
    test.told = [];
    new MutationObserver(() => test.told.push(document.querySelector(".foot")?.textContent))
      .observe(document.querySelector("#turns"), { childList: true, subtree: true, characterData: true });
  });
  await page.$eval("#prompt", (area) => (area.value = "The quick brown fox jumps over the lazy dog. ".repeat(60)));
  await set(page, { "#max-tokens": 4 });
  await say(page, "");
  await answered(page, 1);
  const told = await page.evaluate(() => test.told);
  assert.ok(told.some((words) => /^Reading [1-9][\d\u202f]* of [\d\u202f]+ tokens/.test(words)), String([...new Set(told)]));
  await page.evaluate(() => Object.assign(test, { until: 1, answers: [[{ comment: "read 0 of 1443 prompt tokens" },
    { comment: "read 512 of 1443 prompt tokens" }, { text: "Yes.", depth: 0 }]] }));
  await say(page, "Read.");
  await page.waitForFunction(() => /^Reading 0 of/.test(document.querySelector(".turn:last-of-type .foot")?.textContent));
  assert.equal(await text(page, "#state"), "answering");
  await new Promise((done) => setTimeout(done, 400));
  await page.evaluate(() => (test.until = 2));
  await page.waitForFunction(() => /^Reading 512 of 1\u202f443 tokens, [\d\u202f]+\/s …$/.test(document.querySelector(".turn:last-of-type .foot")?.textContent));
  await page.evaluate(() => (test.until = Infinity));
  await answered(page, 2);
  assert.equal(await text(page, "#state"), "ready");
  const figures = await page.evaluate(() => document.body.innerText.match(/123 tokens\/s/g).length);
  assert.equal(figures, 1, "figures stand more than once");
  assert.deepEqual(faults, []);
  await close();
}
