// aerie: LLaMA-family models with speculative decoding, in this process. See index.d.ts.
import koffi from "koffi";
import { AerieError, Calls, Handle, bytes, call, camel, failure, lib, list, name_of, newest_failure, shown, text, text_of, usage,
  whole } from "./library.js";
import { DeviceKind, Finish, Origin, Stage, Status, TEXT_SPECIAL, TEXT_START, sizes } from "./native.js";

export { AerieError };

const low = (values, value) => name_of(values, value).toLowerCase();

// One context for what needs no loading.
let shared;
function context() {
  if (!shared) shared = new_context();
  return shared;
}
function new_context() {
  const made = [null];
  const status = lib.context_create(made);
  if (status !== Status.OK) throw failure(status, "", 0);
  return new Handle(made[0], "context", lib.context_free, false);
}
function check_context(handle, status) {
  if (status !== Status.OK) throw failure(status, lib.context_message(handle), lib.context_cause(handle));
}

export function version() {
  return lib.version();
}

export function devices() {
  const at = context().address, count = [0];
  check_context(at, lib.context_devices(at, count));
  return Array.from({ length: Number(count[0]) }, (_, index) => {
    const device = { size: sizes.device };
    check_context(at, lib.context_device(at, index, device));
    return shown(device, { kind: low(DeviceKind, device.kind) });
  });
}

export function models(folder) {
  const at = context().address, count = [0];
  check_context(at, lib.context_models(at, folder === undefined ? null : text(folder, "folder"), count));
  return Array.from({ length: Number(count[0]) }, (_, index) => {
    const model = { size: sizes.listed_model };
    check_context(at, lib.context_model(at, index, model));
    return shown(model, { heads: model.heads ? model.heads.split("\n") : [] });
  });
}

const NAMES = ["head", "draft", "device", "weights", "draft_weights", "kv", "models", "cache"];
const NUMBERS = ["context", "sessions", "threads", "chain_length"];

function no_others(given, known) {
  for (const name of Object.keys(given)) if (!known.includes(name)) throw usage(`no option is called ${name}`);
}

function options_of(model, given, calls) {
  if (given === null || typeof given !== "object") throw usage("the options are no object");
  no_others(given, [...NAMES.map(camel), ...NUMBERS.map(camel), "tree", "onProgress", "signal"]);
  const options = { size: sizes.model_options, model: text(model, "model") };
  for (const name of NAMES) if (given[camel(name)] !== undefined) options[name] = text(given[camel(name)], camel(name));
  for (const name of NUMBERS) options[name] = whole(given[camel(name)] ?? 0, camel(name));
  if (given.tree !== undefined) {
    if (!Array.isArray(given.tree) || given.tree.length !== 3) throw usage("tree: expected [nodes, levels, topK]");
    [options.tree_nodes, options.tree_levels, options.tree_top_k] = given.tree.map((one) => whole(one, "tree"));
  }
  if (given.onProgress || given.signal)
    options.load_progress = calls.add("load_callback", (_user, stage, done, total) => {
      if (given.signal?.aborted) return false;
      return given.onProgress?.(low(Stage, stage), Number(done), Number(total));
    });
  return options;
}

// Runs a call that takes options in a context of its own, so that its failure is not mixed up with another's.
async function with_options(model, given, run) {
  given.signal?.throwIfAborted();
  const own = new_context(), calls = new Calls();
  try {
    const options = options_of(model, given, calls);
    return await own.use(async (at) => {
      const status = await run(at, options);
      calls.rethrow();
      if (status !== Status.OK) {
        given.signal?.throwIfAborted();
        throw newest_failure(status, lib.context_failure, at);
      }
    });
  } finally {
    own.close();
    calls.end();
  }
}

export async function forecast(model, options = {}) {
  const found = { size: sizes.forecast };
  await with_options(model, options, (at, given) => call(lib.model_forecast, at, given, found));
  return shown(found);
}

const only = Symbol("made by the library alone");

export class Model {
  #handle; #sessions = new Set(); #turn = Promise.resolve();
  constructor(key, handle) {
    if (key !== only) throw usage("models are made by Model.open()");
    this.#handle = handle;
    const info = { size: sizes.model_info }, sampling = { size: sizes.sampling };
    this.#check(lib.model_get_info(handle.address, info));
    this.#check(lib.model_get_sampling(handle.address, sampling));
    this.info = Object.freeze(shown(info, { eos_ids: list(info.eos_ids, "int32_t", info.eos_count), eos_count: null }));
    this.sampling = Object.freeze(shown(sampling));
  }
  static async open(model, options = {}) {
    const made = [null];
    await with_options(model, options, (at, given) => call(lib.model_open, at, given, made));
    return new Model(only, new Handle(made[0], "model", lib.model_free, false));
  }
  #check(status) {
    if (status !== Status.OK) throw failure(status, lib.model_message(this.#handle.address), lib.model_cause(this.#handle.address));
  }
  tokenize(given, { start = false, special = false } = {}) {
    const whole_text = Buffer.from(String(given)), ids = [null], count = [0];
    if (whole_text.length === 0 && !start) return [];
    // The length is given apart, so that the text may hold NUL.
    this.#check(lib.model_tokenize(this.#handle.address, String(given), whole_text.length,
      (start ? TEXT_START : 0) | (special ? TEXT_SPECIAL : 0), ids, count));
    const found = list(ids[0], "int32_t", count[0]);
    lib.free(ids[0]);
    return found;
  }
  detokenize(ids) {
    const made = [null], count = [0];
    this.#check(lib.model_detokenize(this.#handle.address, ids_of(ids), ids.length, made, count));
    const found = text_of(made[0], count[0]);
    lib.free(made[0]);
    return found;
  }
  tokenBytes(id) {
    const made = [null], count = [0];
    this.#check(lib.model_token_bytes(this.#handle.address, whole(id, "id"), made, count));
    return bytes(made[0], count[0]);
  }
  render(messages) {
    const listed = messages.map((one) => ({ role: text(one.role, "role"), content: text(one.content, "content") }));
    const made = [null];
    this.#check(lib.model_render(this.#handle.address, listed, listed.length, made, null, null));
    const found = koffi.decode(made[0], "char", -1);
    lib.free(made[0]);
    return found;
  }
  // Calls that may fail with a message of the model follow each other.
  async #make(run) {
    const before = this.#turn;
    let leave;
    this.#turn = new Promise((resolve) => { leave = resolve; });
    await before;
    try {
      return await this.#handle.use(async (at) => {
        const made = [null];
        const status = await run(at, made);
        if (status !== Status.OK) throw newest_failure(status, lib.model_failure, at);
        return this.#keep(made[0]);
      });
    } finally {
      leave();
    }
  }
  #keep(address) {
    const session = new Session(only, this, new Handle(address, "session", lib.session_free, true), (one) => this.#keep(one));
    this.#sessions.add(new WeakRef(session));
    if (this.#sessions.size > 64)
      for (const one of this.#sessions) if (!one.deref() || one.deref().closed) this.#sessions.delete(one);
    if (this.closed) session.close();
    return session;
  }
  session() {
    return this.#make((at, made) => call(lib.session_create, at, made));
  }
  async load(path) {
    const given = text(path, "path");
    return this.#make((at, made) => call(lib.session_load, at, given, made));
  }
  get closed() { return this.#handle.closed; }
  close() {
    this.#handle.close();
    for (const one of this.#sessions) one.deref()?.close();
    this.#sessions.clear();
  }
  [Symbol.dispose ?? Symbol.for("dispose")]() { this.close(); }
}

function ids_of(ids) {
  if (!Array.isArray(ids) && !ArrayBuffer.isView(ids)) throw usage("expected a list of ids");
  return Int32Array.from(ids, (id) => whole(id, "an id"));
}

const REQUEST = ["maxTokens", "sampling", "seed", "stops", "logprobs", "alternatives", "drafts", "ignoreEos", "plainText",
  "onProgress", "editLogits", "signal", "system"];

function sampling_of(given) {
  const sampling = { size: sizes.sampling };
  for (const name of ["temperature", "top_p", "min_p", "repetition", "frequency", "presence"]) {
    const value = given[camel(name)] ?? 0;
    if (typeof value !== "number") throw usage(`sampling: ${camel(name)} is no number`);
    sampling[name] = value;
  }
  sampling.top_k = whole(given.topK ?? 0, "topK");
  return sampling;
}

function seed_of(seed) {
  const value = typeof seed === "bigint" ? seed : BigInt(whole(seed, "seed", 0, Number.MAX_SAFE_INTEGER));
  if (value < 0n || value >= 1n << 64n) throw usage(`seed: expected a number of 64 bits, not ${seed}`);
  return value;
}

// The request of C. Its texts and lists live until it has begun.
function request_of(prompt, given, calls) {
  if (given === null || typeof given !== "object") throw usage("the options are no object");
  no_others(given, REQUEST);
  const request = { size: sizes.request };
  const is_list = Array.isArray(prompt) || ArrayBuffer.isView(prompt);
  if (typeof prompt === "string") {
    const whole_text = Buffer.from(prompt + "\0");
    request.text = whole_text;
    request.text_bytes = whole_text.length - 1;
  } else if (is_list && (prompt.length === 0 || typeof prompt[0] !== "object")) {
    request.ids = ids_of(prompt);
    request.id_count = prompt.length;
  } else if (prompt !== null && typeof prompt === "object") {
    request.conversation = JSON.stringify(prompt);
  } else {
    throw usage("prompt: expected a string, ids, messages or a conversation");
  }
  if (given.sampling !== undefined) {
    if (given.sampling === null || typeof given.sampling !== "object") throw usage("sampling is no object");
    request.sampling = sampling_of(given.sampling);
  }
  if (given.seed !== undefined) {
    request.seed = seed_of(given.seed);
    request.has_seed = 1;
  }
  request.max_tokens = whole(given.maxTokens ?? 0, "maxTokens");
  request.alternatives = whole(given.alternatives ?? 0, "alternatives");
  request.logprobs = given.logprobs ? 1 : 0;
  request.without_drafts = given.drafts === false ? 1 : 0;
  request.ignore_eos = given.ignoreEos ? 1 : 0;
  request.plain_text = given.plainText ? 1 : 0;
  const stops = typeof given.stops === "string" ? [given.stops] : given.stops ?? [];
  if (!Array.isArray(stops)) throw usage("stops: expected a list of texts");
  if (stops.length > 0) request.stops = stops.map((stop) => text(stop, "a stop text"));
  request.stop_count = stops.length;
  if (given.onProgress)
    request.prompt_progress = calls.add("prompt_callback", (_user, done, total) => given.onProgress(Number(done), Number(total)));
  if (given.editLogits)
    request.edit_logits = calls.add("logits_callback", (_user, ids, count, logits, vocab) => {
      const values = koffi.decode(logits, "float", Number(vocab));
      given.editLogits(list(ids, "int32_t", count), values);
      koffi.encode(logits, "float", values, Number(vocab));
    });
  return request;
}

const LEFT = "another answer of this session was begun, or it was rewound";

export class Answer {
  #session; #begun; #done = false; #left = false; #cancelled = false; #parts = []; #calls; #step; #forget_signal;
  tokens = [];
  finish = "none";
  seed = 0n;
  promptTokens = 0;
  reusedTokens = 0;
  statistics = undefined;
  constructor(key, session, calls, begun, step, signal) {
    if (key !== only) throw usage("answers are made by Session.stream() and say()");
    this.#session = session;
    this.#calls = calls;
    this.#step = step;
    this.#begun = begun(this).then(() => { if (this.#cancelled) session.cancel(this); });
    // A failure is reported by next().
    this.#begun.catch(() => {
      this.#done = true;
      this.#forget_signal();
    });
    const cancel = () => this.cancel();
    this.#forget_signal = () => signal?.removeEventListener("abort", cancel);
    if (signal?.aborted) this.cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
  }
  get text() { return this.#parts.join(""); }
  get done() { return this.#done; }
  cancel() {
    this.#cancelled = true;
    this.#session.cancel(this);
  }
  async next() {
    await this.#begun;
    while (true) {
      if (this.#left) throw usage(LEFT);
      if (this.#done) return { done: true, value: undefined };
      const piece = await this.#step(this);
      if (piece.text || piece.tokens.length > 0) return { done: false, value: piece };
    }
  }
  // A loop that is left early may be gone on with.
  async return() { return { done: true, value: undefined }; }
  [Symbol.asyncIterator]() {
    if (this.#done && !this.#left) throw usage("the answer has been read; its text and tokens are kept");
    return this;
  }
  async read() {
    while (!(await this.next()).done);
    return this.text;
  }
  // For the session alone.
  [only] = {
    reply: undefined,
    add: (piece) => {
      this.#parts.push(piece.text);
      this.tokens.push(...piece.tokens);
      if (this[only].reply) this[only].reply.content = this.text;
    },
    end: (left) => {
      if (this.#done) return;
      this.#done = true;
      this.#left = left;
      this.#forget_signal();
      if (this.finish === "none") this.finish = "cancelled";
    },
    rethrow: () => this.#calls.rethrow(),
    has_raised: () => this.#calls.has_raised,
  };
}

export class Session {
  #model; #handle; #answer; #kept; #fork;
  messages = [];
  constructor(key, model, handle, fork) {
    if (key !== only) throw usage("sessions are made by Model.session() and load()");
    this.#model = model; // which stays as long as its sessions
    this.#handle = handle;
    this.#fork = fork;
  }
  #fail(at, status) {
    if (status !== Status.OK) throw failure(status, lib.session_message(at), lib.session_cause(at));
  }
  stream(prompt, options = {}) {
    return this.#begin(() => prompt, options, () => {});
  }
  say(said, options = {}) {
    text(said, "message");
    const { system, ...rest } = options;
    let messages;
    const prompt = () => {
      messages = system === undefined ? [...this.messages]
        : [{ role: "system", content: text(system, "system") }, ...this.messages.filter((one) => one.role !== "system")];
      messages.push({ role: "user", content: said });
      return messages;
    };
    const begun = (answer) => {
      const reply = { role: "assistant", content: "" };
      answer[only].reply = reply;
      this.messages = [...messages, reply];
    };
    return this.#begin(prompt, rest, begun);
  }
  #begin(prompt, options, on_begun) {
    const calls = new Calls();
    // Begins in its turn: the prompt of say() depends on the answer before.
    const begin = (answer) => this.#handle.use(async (at) => {
      try {
        const request = request_of(prompt(), options, calls);
        this.#fail(at, await call(lib.session_begin, at, request));
      } catch (error) {
        calls.end();
        throw error;
      }
      // The former answer's callbacks may have been called until now.
      this.#kept?.end();
      this.#kept = calls;
      this.#handle.at_end = [() => calls.end()];
      this.#answer?.[only].end(true);
      this.#answer = answer;
      on_begun(answer);
      this.#note(at, answer);
    });
    return new Answer(only, this, calls, begin, (answer) => this.#step(answer), options?.signal);
  }
  #step(answer) {
    return this.#handle.use(async (at) => {
      if (this.#answer !== answer) throw usage(LEFT);
      if (answer.done) return { text: "", tokens: [] };
      const step = { size: sizes.step };
      const status = await call(lib.session_step, at, step);
      this.#note(at, answer);
      if (status !== Status.OK || answer[only].has_raised()) {
        answer[only].end(false);
        answer[only].rethrow();
        this.#fail(at, status);
      }
      const tokens = Array.from({ length: Number(step.token_count) }, (_, index) => this.#token(at, Number(step.first_token) + index));
      const piece = { text: text_of(step.text, step.text_bytes), tokens };
      answer[only].add(piece);
      if (!step.more) answer[only].end(false);
      return piece;
    });
  }
  #token(at, index) {
    const token = { size: sizes.token };
    this.#fail(at, lib.session_token(at, index, token));
    const count = Number(token.alternative_count);
    return { id: token.id, bytes: bytes(token.bytes, token.byte_count), origin: low(Origin, token.origin),
      drafted: token.origin === Origin.FROM_DRAFT, depth: token.depth, logprob: Number.isNaN(token.logprob) ? undefined : token.logprob,
      alternatives: count ? koffi.decode(token.alternatives, "aerie_token_logprob", count) : [] };
  }
  #note(at, answer) {
    const found = { size: sizes.answer }, statistics = { size: sizes.statistics };
    this.#fail(at, lib.session_answer(at, found));
    this.#fail(at, lib.session_statistics(at, statistics));
    answer.finish = low(Finish, found.finish);
    answer.seed = BigInt(found.seed);
    answer.promptTokens = Number(found.prompt_tokens);
    answer.reusedTokens = Number(found.reused_tokens);
    answer.statistics = shown(statistics,
      { accepted_by_depth: list(statistics.accepted_by_depth, "int32_t", statistics.depth_count), depth_count: null });
  }
  ids() {
    return this.#handle.use((at) => {
      const ids = [null], count = [0];
      this.#fail(at, lib.session_ids(at, ids, count, null));
      return list(ids[0], "int32_t", count[0]);
    });
  }
  cycle() {
    return this.#handle.use((at) => {
      const found = { size: sizes.cycle };
      this.#fail(at, lib.session_cycle(at, found));
      const each = (pointer, type) => (pointer === null ? undefined : list(pointer, type, found.node_count));
      return { tokens: each(found.tokens, "int32_t"), parents: each(found.parents, "int32_t"), values: each(found.values, "float"),
        choices: each(found.choices, "int32_t"), path: list(found.path, "int32_t", found.path_count), next: found.next };
    });
  }
  cancel(answer) {
    if (!this.#handle.closed && (answer === undefined || this.#answer === answer)) lib.session_cancel(this.#handle.address);
  }
  async rewind(length) {
    whole(length, "length", 0, Number.MAX_SAFE_INTEGER);
    await this.#handle.use(async (at) => {
      this.#fail(at, await call(lib.session_rewind, at, length));
      this.#answer?.[only].end(true);
      this.#answer = undefined;
    });
  }
  async fork(length) {
    if (length !== undefined) whole(length, "length", 0, Number.MAX_SAFE_INTEGER);
    return this.#handle.use(async (at) => {
      const made = [null], ids = [null], count = [0];
      this.#fail(at, lib.session_ids(at, ids, count, null));
      this.#fail(at, await call(lib.session_fork, at, length ?? Number(count[0]), made));
      return this.#fork(made[0]);
    });
  }
  async save(path) {
    const given = text(path, "path");
    await this.#handle.use(async (at) => this.#fail(at, await call(lib.session_save, at, given)));
  }
  get model() { return this.#model; }
  get closed() { return this.#handle.closed; }
  close() {
    this.cancel();
    this.#handle.close();
  }
  [Symbol.dispose ?? Symbol.for("dispose")]() { this.close(); }
}
