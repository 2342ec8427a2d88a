// Written by bindings/generate.py from src/api/aerie.h. Do not edit.

/** Why a call failed, for programs that decide by it. New causes may come; treat those that you do not know like AERIE_CAUSE_OTHER. */
export type Cause =
  /** nothing has failed */
  | "NONE"
  /** only the message says it */
  | "OTHER"
  /** the request is impossible, or a handle is null */
  | "ARGUMENT"
  /** the prompt has no room in the context: shorten it */
  | "TOO_LONG"
  /** the model has as many sessions as it was opened for */
  | "SESSIONS"
  /** no such file, folder or model: offer to get it */
  | "NOT_FOUND"
  /** a file cannot be read or written: rights, a full disk */
  | "FILE"
  /** a file does not hold what it should: get it again */
  | "DAMAGED"
  /** aerie cannot run what the file holds: offer another model */
  | "UNSUPPORTED"
  /** a saved session belongs to another model */
  | "OTHER_MODEL"
  /** no such device, or it cannot be used: offer another */
  | "NO_DEVICE"
  /** the device failed while it worked: open the model again */
  | "DEVICE_LOST"
  /** the device has too little memory: a smaller context, fewer sessions, a smaller model */
  | "DEVICE_MEMORY"
  /** the host has too little memory */
  | "HOST_MEMORY"
  /** one of your callbacks asked for it */
  | "CANCELLED";

export type DeviceKind =
  | "cpu"
  | "integrated_gpu"
  | "virtual_gpu"
  | "discrete_gpu";

export type Stage =
  /** the device is made ready; a driver may compile for a minute */
  | "device"
  /** weights of the model are loaded */
  | "model"
  /** weights of a head or draft model are loaded */
  | "head"
  /** the device is measured */
  | "costs";

export type Finish =
  /** it is not finished */
  | "none"
  /** an end token or a stop text */
  | "stop"
  /** max_tokens, or the context is full */
  | "length"
  /** also: another answer was begun, or the session rewound */
  | "cancelled"
  | "failed";

export type Origin =
  /** chosen by the pass over the prompt */
  | "after_prompt"
  /** drafted, and equal to the target's choice */
  | "from_draft"
  /** the target's choice, where no draft was right */
  | "from_target";

export interface Device {
  /** "cpu", "vulkan:0", "cuda:0": for aerie_model_options */
  name: string;
  /** for messages */
  description: string;
  /** for messages: more lines, may be "" */
  details: string;
  /** why it cannot be used; "" if it can */
  problem: string;
  memoryBytes: number;
  /** aerie_device_kind */
  kind: DeviceKind;
  /** threads of a CPU, else 0 */
  threads: number;
  /** whether it is the default device */
  isBest: boolean;
}

/** A model that is on this machine. */
export interface ListedModel {
  /** opens it: for aerie_model_options */
  name: string;
  /** a folder or a .gguf file */
  path: string;
  /** the program that keeps it: "aerie", "Hugging Face", "LM Studio", "llama.cpp", "Ollama" */
  program: string;
  /** names of the heads beside it, one a line; "" if there is none */
  heads: string[];
  weightBytes: number;
}

/** Memory in bytes, known before anything is loaded. */
export interface Forecast {
  targetWeights: number;
  draftWeights: number;
  /** for all sessions */
  kvCache: number;
  scratch: number;
  program: number;
  total: number;
  /** memory of the device */
  deviceMemory: number;
  /** whether the device is usable and has enough memory */
  fits: boolean;
  /** context of this forecast */
  context: number;
  /** largest that would fit; 0: none */
  largestContext: number;
}

export interface ModelInfo {
  /** path of the model */
  path: string;
  /** path of the head or draft model; "" if there is none */
  head: string;
  device: string;
  deviceDescription: string;
  /** the method; "none" if it cannot draft */
  draft: string;
  /** each of these ends a text */
  eosIds: number[];
  /** most tokens of a session */
  context: number;
  /** context that the model was trained for */
  trainedContext: number;
  /** number of logits */
  vocab: number;
  /** tokens of the tokenizer */
  tokens: number;
  /** -1: none */
  bos: number;
  /** most sessions at a time */
  sessions: number;
  canDraft: boolean;
  hasChatTemplate: boolean;
  /** whether its chat template uses a system message */
  hasSystemRole: boolean;
  /** numbers in its weights */
  parameters: number;
  /** memory of its weights on the device */
  weightBytes: number;
  /** "llama", "qwen3", ... */
  architecture: string;
  /** types of the weights in its files: "f16", "q4_k, q6_k" */
  weights: string;
  /** in Jinja; "" if there is none */
  chatTemplate: string;
}

/** How tokens are chosen. All zero: always the likeliest token. */
export interface Sampling {
  /** 0: the likeliest token */
  temperature: number;
  /** 0: off */
  topK: number;
  /** 0: off */
  topP: number;
  /** 0: off */
  minP: number;
  /** penalty; 0 or 1: off */
  repetition: number;
  /** penalty; 0: off */
  frequency: number;
  /** penalty; 0: off */
  presence: number;
}

export interface Statistics {
  /** cycles of draft and verify */
  cycles: number;
  /** put out by them; one more came from the prompt */
  cycleTokens: number;
  /** cycles without a draft */
  plainCycles: number;
  /** [d]: cycles that put out a drafted token of depth d + 1; valid until the next call that changes the answer */
  acceptedByDepth: number[];
  /** nodes verified in all cycles */
  cycleNodes: number;
  /** acceptance length: tokens per cycle */
  tau: number;
  /** without the time for the prompt */
  tokensPerSecond: number;
  prefillSeconds: number;
  decodeSeconds: number;
  /** parts of decoding */
  draftSeconds: number;
  /** parts of decoding */
  verifySeconds: number;
  /** parts of decoding */
  sampleSeconds: number;
  /** parts of decoding */
  hostSeconds: number;
}
