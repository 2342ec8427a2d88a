// The same prompt and seed, plain and with drafting, in turn.

const ROUNDS = 3;

class Lane {
  constructor(id) {
    this.node = find(id);
    this.text = find(".text", this.node);
    this.clock = find(".clock", this.node);
    this.bar = find(".track div", this.node);
    this.numbers = find(".numbers", this.node);
    this.clear();
  }

  clear() {
    Object.assign(this, { parts: [], source: new Source(), drawn: 0, result: null, chunk: null });
    for (const part of [this.text, this.clock, this.numbers]) part.replaceChildren();
    this.progress(0);
  }

  progress(share) {
    this.bar.style.transform = `scaleX(${Math.min(1, share).toFixed(3)})`;
  }

  add(pieces) {
    for (const { text, depth } of pieces) this.source.add(text, depth);
    frames.ask(this);
  }

  // Draws only new text, in chunks, so that the browser need not lay out a long text again.
  draw() {
    const end = Math.min(this.source.text.length, this.drawn + 4000);
    if (!this.chunk || this.chunk.textContent.length > 4000) this.text.append((this.chunk = make("div")));
    this.source.emit(this.chunk, this.drawn, end);
    this.drawn = end;
    this.text.scrollTop = 1e9;
    return end === this.source.text.length;
  }

  // Sends the request, and shows the answer while it arrives.
  async run(body, tokens, signal) {
    this.node.classList.add("running");
    let first = 0;
    const onPart = ({ choices }) => {
      const [choice] = choices;
      if (!choice?.aerie) return;
      const pieces = (choice.aerie.pieces ?? []).map(({ text, from, depth }) => ({ text, depth: from === "draft" ? depth : 0 }));
      first ||= performance.now();
      const at = (performance.now() - first) / 1000;
      this.parts.push({ at, pieces, tokens: choice.aerie.tokens });
      this.add(pieces);
      this.progress(choice.aerie.tokens / tokens);
      this.clock.textContent = at.toFixed(2) + " s";
      if (choice.finish_reason) this.result = choice.aerie;
    };
    try {
      await stream(hasTemplate() ? "/v1/chat/completions" : "/v1/completions", body, signal, onPart);
    } finally {
      this.node.classList.remove("running");
    }
    this.progress(1);
    this.show();
  }

  show() {
    const { tokens, tokens_per_second: speed, decode_seconds: seconds, tau } = this.result;
    this.clock.textContent = seconds.toFixed(2) + " s";
    const rows = [["tokens/s", roughly(speed)], ["tokens", grouped(tokens)], ["τ", tau.toFixed(2)]];
    this.numbers.replaceChildren(...rows.map(([name, value]) =>
      make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
  }
}

const race = { plain: new Lane("#lane-plain"), drafted: new Lane("#lane-drafted"), running: null };
const raceLanes = [race.plain, race.drafted];

// Waits until all that arrived is on the page.
async function drawn() {
  while (raceLanes.some((lane) => lane.drawn < lane.source.text.length)) await new Promise(requestAnimationFrame);
}

// The first byte at which the texts differ; -1: they are equal.
function firstDifference(a, b) {
  for (let i = 0; i < Math.max(a.length, b.length); ++i) if (a[i] !== b[i]) return i;
  return -1;
}

// Without drafts both runs are of one kind, and their ratio is noise.
function factorOf(ratios, { hardly_drafted: hardly, why_hardly_drafted: why }) {
  if (hardly) return make("p", { className: "factor" }, why ? sentence(why) : "Hardly anything was drafted.");
  const sorted = ratios.toSorted((a, b) => a - b);
  const median = sorted[sorted.length >> 1], [least, most] = [sorted[0], sorted.at(-1)].map((ratio) => ratio.toFixed(2));
  const range = sorted.length > 1 ? ` (median of ${sorted.length} rounds, ${least} to ${most})` : "";
  return make("p", { className: "factor" }, make("strong", { textContent: median.toFixed(2) + "×" }),
    " as fast with drafts" + range + (median >= 1 ? "" : ": here they do not pay"));
}

function showVerdict(ratios) {
  const [a, b] = raceLanes.map((lane) => new TextEncoder().encode(lane.source.text));
  const at = firstDifference(a, b);
  const factor = factorOf(ratios, race.drafted.result);
  const same = make("p", { className: at < 0 ? "same" : "differs" });
  same.textContent = at < 0 ? `Texts equal, all ${plural(a.length, "byte")} compared` : `Texts differ from byte ${grouped(at)} on`;
  find("#verdict").replaceChildren(factor, same);
  find("#verdict").dataset.equal = at < 0;
}

function raceBody() {
  const prompt = find("#race-prompt").value, seed = find("#race-seed").value;
  const body = { ...sampling(), model: model.id, seed: seed === "" ? randomSeed() : Number(seed) };
  if (hasTemplate()) body.messages = withSystem([{ role: "user", content: prompt }]);
  else body.prompt = prompt;
  return body;
}

async function runRace(signal) {
  const tokens = Math.max(2, Number(find("#race-tokens").value) || 200);
  const body = raceBody(), path = hasTemplate() ? "/v1/chat/completions" : "/v1/completions";
  const count = new ReadingCount();
  tell("Reading the prompt …");
  await stream(path, { ...body, max_tokens: 1, draft: true }, signal, () => {}, (read, all) => tell(count.words(read, all)));
  const ratios = [];
  for (let round = 1; round <= ROUNDS; ++round) {
    for (const lane of raceLanes) lane.clear();
    const of = ` (round ${round} of ${ROUNDS}) …`;
    tell("Plain decoding runs" + of);
    await race.plain.run({ ...body, max_tokens: tokens, draft: false }, tokens, signal);
    tell("Now the same with drafts" + of);
    await race.drafted.run({ ...body, max_tokens: tokens, draft: true }, tokens, signal);
    ratios.push(race.plain.result.decode_seconds / race.drafted.result.decode_seconds);
    await drawn();
  }
  showVerdict(ratios);
  find("#replay").hidden = false;
}

const tell = (text) => find("#verdict").replaceChildren(make("p", { textContent: text }));

function setRacing(controller) {
  race.running = controller;
  find("#race-start").hidden = Boolean(controller);
  find("#race-stop").hidden = !controller;
  watch.show();
}

// Runs `work` with a signal that Stop aborts.
async function whileRacing(work) {
  if (race.running) return;
  const controller = new AbortController();
  setRacing(controller);
  try {
    await work(controller.signal);
  } catch (error) {
    tell(error.name === "AbortError" ? "Stopped." : message(error) + ".");
    if (error.status === 401) openSettings("The server asks for its API key.");
  }
  setRacing(null);
}

function startRace() {
  if (!/\S/.test(find("#race-prompt").value)) return find("#race-prompt").focus();
  keepRace();
  if (race.running) return;
  for (const lane of raceLanes) lane.clear();
  find("#replay").hidden = true;
  delete find("#verdict").dataset.equal;
  whileRacing(runRace);
  showLanes();
}

// On a phone both lanes fit the window once the prompt is scrolled away.
function showLanes() {
  if (find(".lanes").getBoundingClientRect().bottom <= innerHeight) return;
  find("#race-prompt").blur();  // the keyboard would take their place
  find("#verdict").scrollIntoView({ block: "start" });
}

// Shows both runs again, at the speed at which they came.
async function replay(signal) {
  const runs = raceLanes.map(({ parts, result }) => ({ parts, result, next: 0 }));
  raceLanes.forEach((lane, i) => {
    lane.clear();
    Object.assign(lane, { parts: runs[i].parts, result: runs[i].result });
    lane.node.classList.add("running");
  });
  showLanes();
  const began = performance.now();
  const isOver = () => runs.every((run) => run.next === run.parts.length);
  while (!isOver() && !signal.aborted) {
    await new Promise(requestAnimationFrame);
    const now = (performance.now() - began) / 1000;
    raceLanes.forEach((lane, i) => replayUntil(lane, runs[i], now));
  }
  raceLanes.forEach((lane, i) => replayUntil(lane, runs[i], Infinity));
  await drawn();
}

function replayUntil(lane, run, now) {
  const { parts, result } = run;
  if (run.next === parts.length) return;
  const pieces = [];
  for (; run.next < parts.length && parts[run.next].at <= now; ++run.next) pieces.push(...parts[run.next].pieces);
  if (pieces.length) lane.add(pieces);
  lane.clock.textContent = Math.min(now, parts.at(-1).at).toFixed(2) + " s";
  lane.progress((parts[run.next - 1]?.tokens ?? 0) / result.tokens);
  if (run.next < parts.length) return;
  lane.node.classList.remove("running");
  lane.show();
}

function keepRace() {
  Object.assign(raceState, { prompt: find("#race-prompt").value, tokens: find("#race-tokens").value, seed: find("#race-seed").value });
  save();
}

function beginRace() {
  find("#race-prompt").value = raceState.prompt;
  find("#race-tokens").value = raceState.tokens;
  find("#race-seed").value = raceState.seed;
  find("#race").addEventListener("submit", (event) => {
    event.preventDefault();
    startRace();
  });
  find("#race").addEventListener("change", keepRace);
  find("#race-prompt").addEventListener("input", (event) => fit(event.target));
  find("#race-stop").addEventListener("click", () => race.running?.abort());
  find("#replay").addEventListener("click", () => whileRacing(replay));
}
