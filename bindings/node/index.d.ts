/** aerie: LLaMA-family models with speculative decoding, in this process. Nothing blocks the event loop. */
import type { Cause, Device, Finish, Forecast, ListedModel, ModelInfo, Origin, Sampling, Stage, Statistics } from "./native.js";
export type { Cause, Device, DeviceKind, Finish, Forecast, ListedModel, ModelInfo, Origin, Sampling, Stage, Statistics } from "./native.js";

/** A failure. `code` says which, for programs that decide by it. */
export declare class AerieError extends Error {
  readonly code: Cause | "CLOSED";
  constructor(message: string, code?: Cause | "CLOSED");
}

export interface ModelOptions {
  head?: string;
  draft?: string;
  device?: string;
  weights?: string;
  draftWeights?: string;
  kv?: string;
  /** A folder that is searched for names before others. */
  models?: string;
  /** A folder for measurements of the device; "": nothing is kept. */
  cache?: string;
  context?: number;
  /** Most sessions at a time; 1 if it is not given. */
  sessions?: number;
  threads?: number;
  chainLength?: number;
  tree?: [nodes: number, levels: number, topK: number];
  /** Bytes of weights that are loaded in a stage, and those of all. A result of false ends the loading. */
  onProgress?: (stage: Stage, done: number, total: number) => void | boolean;
  /** Ends the loading; open() rejects with its reason. */
  signal?: AbortSignal;
}

export interface Message {
  role: string;
  content: unknown;
  [more: string]: unknown;
}

/** The whole text so far: a text, ids, messages, or a conversation with messages, tools, documents, kwargs. */
export type Prompt = string | readonly number[] | Int32Array | readonly Message[] | { messages: readonly Message[]; [more: string]: unknown };

export interface RequestOptions {
  maxTokens?: number;
  /** Without it the model's own sampling holds. {} is always the likeliest token. */
  sampling?: Partial<Sampling>;
  seed?: number | bigint;
  stops?: string | readonly string[];
  logprobs?: boolean;
  alternatives?: number;
  /** false: plain decoding, the same text and slower. */
  drafts?: boolean;
  ignoreEos?: boolean;
  plainText?: boolean;
  /** How much of the prompt has been read. A result of false cancels the answer. */
  onProgress?: (done: number, total: number) => void | boolean;
  /** May change the logits of the token after these ids; must be a function of the ids alone. */
  editLogits?: (ids: number[], logits: Float32Array) => void;
  /** Cancels the answer, which then ends with finish "cancelled"; its text is kept. */
  signal?: AbortSignal;
}

export interface Token {
  id: number;
  bytes: Uint8Array;
  origin: Origin;
  /** Whether it was drafted, and equal to the target's choice. */
  drafted: boolean;
  /** In the draft tree, from 1 on; 0 if it was not drafted. */
  depth: number;
  logprob?: number;
  alternatives: { id: number; logprob: number }[];
}

/** The addition of one step: whole characters, and the tokens behind them. */
export interface Piece {
  text: string;
  tokens: Token[];
}

export interface Cycle {
  tokens: number[];
  parents: number[];
  values?: number[];
  choices?: number[];
  path: number[];
  next: number;
}

/** An answer in the making: iterating over it runs it. Another answer of the same session ends it. */
export declare class Answer implements AsyncIterableIterator<Piece> {
  private constructor();
  readonly text: string;
  readonly tokens: Token[];
  readonly done: boolean;
  readonly finish: Finish;
  readonly seed: bigint;
  readonly promptTokens: number;
  readonly reusedTokens: number;
  readonly statistics?: Statistics;
  /** Ends the answer with its next step at the latest. */
  cancel(): void;
  /** Runs the rest of the answer. The whole text. */
  read(): Promise<string>;
  next(): Promise<IteratorResult<Piece, undefined>>;
  return(): Promise<IteratorResult<Piece, undefined>>;
  [Symbol.asyncIterator](): Answer;
}

/** A conversation. Its calls follow each other in the order in which they were made. */
export declare class Session {
  private constructor();
  readonly model: Model;
  readonly closed: boolean;
  /** The messages that say() has kept. */
  messages: Message[];
  /** Sends a message and streams the answer; both become part of `messages`. */
  say(message: string, options?: RequestOptions & { system?: string }): Answer;
  /** Begins an answer to the whole text so far; the part that the session holds is not read again. */
  stream(prompt: Prompt, options?: RequestOptions): Answer;
  /** Ends the running answer. */
  cancel(answer?: Answer): void;
  ids(): Promise<number[]>;
  /** The tree of the newest step. */
  cycle(): Promise<Cycle>;
  rewind(length: number): Promise<void>;
  fork(length?: number): Promise<Session>;
  save(path: string): Promise<void>;
  /** Frees the session; what is under way ends first, cancelled. */
  close(): void;
}

export declare class Model {
  private constructor();
  /** Loads a folder, a .gguf file, or a name that models() lists. */
  static open(model: string, options?: ModelOptions): Promise<Model>;
  readonly info: Readonly<ModelInfo>;
  /** The model's own sampling. */
  readonly sampling: Readonly<Sampling>;
  readonly closed: boolean;
  session(): Promise<Session>;
  /** A conversation that Session.save() saved. */
  load(path: string): Promise<Session>;
  tokenize(text: string, options?: { start?: boolean; special?: boolean }): number[];
  detokenize(ids: readonly number[] | Int32Array): string;
  tokenBytes(id: number): Uint8Array;
  render(messages: readonly { role: string; content: string }[]): string;
  /** Frees the model and closes its sessions. */
  close(): void;
}

export declare function version(): string;
export declare function devices(): Device[];
/** The models at hand: in `folder`, bundled, and those of other programs. */
export declare function models(folder?: string): ListedModel[];
/** The memory that a model will take; nothing is loaded. */
export declare function forecast(model: string, options?: ModelOptions): Promise<Forecast>;
