// Loads the C library, turns its failures into errors, and guards its handles.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import koffi from "koffi";
import { Cause, Status, VERSION_NUMBER, functions, sizes, structs } from "./native.js";

/** A failure. `code` says which, for programs that decide by it. */
export class AerieError extends Error {
  constructor(message, code = "OTHER") {
    super(message);
    this.name = "AerieError";
    this.code = code;
  }
}

export const usage = (message) => new AerieError(message, "ARGUMENT");

function load() {
  for (const name of Object.keys(sizes))
    if (koffi.sizeof(structs[name]) !== sizes[name]) throw new Error(`aerie: this system has other structs than the header (${name})`);
  const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), "lib");
  let file = process.env.AERIE_LIBRARY || path.join(folder, "libaerie.so.0");
  if (!process.env.AERIE_LIBRARY && fs.existsSync(file)) {
    // libaerie finds these by their names once they are loaded.
    for (const name of fs.readdirSync(folder).sort())
      if (name.includes(".so") && !name.startsWith("libaerie.")) koffi.load(path.join(folder, name));
  } else if (!process.env.AERIE_LIBRARY) {
    file = "libaerie.so.0"; // installed on the system
  }
  const library = functions(koffi.load(file));
  if (library.version_number() < VERSION_NUMBER) throw new Error(`aerie: ${file} is older than this package`);
  return library;
}

export const lib = load();

/** The name of an enumerator: "STOP". */
export function name_of(values, value) {
  return Object.keys(values).find((name) => values[name] === value) ?? "OTHER";
}

/** Runs a function of the library in another thread. */
export function call(called, ...given) {
  return new Promise((resolve, reject) =>
    called.async(...given, (error, result) => (error ? reject(error) : resolve(result))));
}

export function failure(status, message, cause) {
  let code = name_of(Cause, cause);
  if (status === Status.USAGE && (code === "OTHER" || code === "NONE")) code = "ARGUMENT";
  return new AerieError(message || name_of(Status, status).toLowerCase(), code);
}

/** The newest failure of a context or model in any thread: calls run in threads that nobody chooses. */
export function newest_failure(status, ask, handle) {
  const message = [null], cause = [0];
  if (ask(handle, message, cause) !== Status.OK) return failure(status, "", 0);
  const text = message[0] === null ? "" : koffi.decode(message[0], "char", -1);
  lib.free(message[0]);
  return failure(status, text, cause[0]);
}

const forgotten = new FinalizationRegistry(({ free, address }) => free(address));

/** A C handle that is freed when it is closed and no call is under way with it. Calls follow each other if `in_turn`. */
export class Handle {
  #address; #kind; #free; #users = 0; #closed = false; #newest = Promise.resolve(); #in_turn;
  constructor(address, kind, free, in_turn) {
    this.#address = address;
    this.#kind = kind;
    this.#free = free;
    this.#in_turn = in_turn;
    this.at_end = []; // callbacks that the library may call until the handle is freed
    forgotten.register(this, { free, address }, this);
  }
  get closed() { return this.#closed; }
  get address() {
    if (this.#closed) throw new AerieError(`the ${this.#kind} is closed`, "CLOSED");
    return this.#address;
  }
  /** Runs a function, which may wait, with the address. */
  async use(work) {
    const before = this.#newest;
    let leave;
    if (this.#in_turn) this.#newest = new Promise((resolve) => { leave = resolve; });
    try {
      if (this.#in_turn) await before;
      const address = this.address;
      ++this.#users;
      try {
        return await work(address);
      } finally {
        --this.#users;
        this.#free_if_unused();
      }
    } finally {
      leave?.();
    }
  }
  close() {
    this.#closed = true;
    this.#free_if_unused();
  }
  #free_if_unused() {
    if (!this.#closed || this.#users > 0 || this.#address === null) return;
    forgotten.unregister(this);
    this.#free(this.#address);
    this.#address = null;
    for (const end of this.at_end.splice(0)) end();
  }
}

/** Callbacks of JavaScript that the library may call from other threads until they are ended. */
export class Calls {
  #registered = [];
  raised = undefined;
  has_raised = false;
  add(type, called) {
    const guarded = (...given) => {
      if (this.has_raised) return 1;
      try {
        return called(...given) === false ? 1 : 0;
      } catch (error) {
        this.has_raised = true;
        this.raised = error;
        return 1;
      }
    };
    const pointer = koffi.register(guarded, `aerie_${type}*`);
    this.#registered.push(pointer);
    return pointer;
  }
  end() {
    for (const pointer of this.#registered.splice(0)) koffi.unregister(pointer);
  }
  rethrow() {
    if (!this.has_raised) return;
    this.has_raised = false;
    throw this.raised;
  }
}

export const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** A struct as programs see it: names in camelCase, flags as booleans, no size. */
export function shown(struct, changed = {}) {
  const out = {};
  for (const [name, value] of Object.entries(struct)) {
    if (name === "size" || changed[name] === null) continue;
    const is_flag = /^(is|can|has)_/.test(name) || name === "fits";
    out[camel(name)] = name in changed ? changed[name] : is_flag ? value !== 0 : typeof value === "bigint" ? Number(value) : value ?? "";
  }
  return out;
}

export function list(pointer, type, count) {
  return pointer === null || Number(count) === 0 ? [] : Array.from(koffi.decode(pointer, type, Number(count)));
}

export function bytes(pointer, count) {
  return pointer === null || Number(count) === 0 ? new Uint8Array(0) : Uint8Array.from(koffi.decode(pointer, "uint8_t", Number(count)));
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
export const text_of = (pointer, count) => decoder.decode(bytes(pointer, count));

export function text(value, what) {
  if (typeof value !== "string") throw usage(`${what}: expected a string, not ${typeof value}`);
  if (value.includes("\0")) throw usage(`${what} contains NUL`);
  if (!value.isWellFormed?.() && /[\ud800-\udfff]/u.test(value)) throw usage(`${what} is no text in UTF-8`);
  return value;
}

export function whole(value, what, low = -(2 ** 31), high = 2 ** 31 - 1) {
  if (!Number.isInteger(value) || value < low || value > high)
    throw usage(`${what}: expected a whole number from ${low} to ${high}, not ${String(value)}`);
  return value;
}
