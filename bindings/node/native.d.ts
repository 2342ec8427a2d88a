// Written by bindings/generate.py from src/api/aerie.h. Do not edit.

/** Why a call failed, for programs that decide by it. New causes may come; treat those that you do not know like AERIE_CAUSE_OTHER. */
export declare const Cause: {
  /** nothing has failed */
  readonly NONE: 0;
  /** only the message says it */
  readonly OTHER: 1;
  /** the request is impossible, or a handle is null */
  readonly ARGUMENT: 2;
  /** the prompt has no room in the context: shorten it */
  readonly TOO_LONG: 3;
  /** the model has as many sessions as it was opened for */
  readonly SESSIONS: 4;
  /** no such file, folder or model: offer to get it */
  readonly NOT_FOUND: 5;
  /** a file cannot be read or written: rights, a full disk */
  readonly FILE: 6;
  /** a file does not hold what it should: get it again */
  readonly DAMAGED: 7;
  /** aerie cannot run what the file holds: offer another model */
  readonly UNSUPPORTED: 8;
  /** a saved session belongs to another model */
  readonly OTHER_MODEL: 9;
  /** no such device, or it cannot be used: offer another */
  readonly NO_DEVICE: 10;
  /** the device failed while it worked: open the model again */
  readonly DEVICE_LOST: 11;
  /** the device has too little memory: a smaller context, fewer sessions, a smaller model */
  readonly DEVICE_MEMORY: 12;
  /** the host has too little memory */
  readonly HOST_MEMORY: 13;
  /** one of your callbacks asked for it */
  readonly CANCELLED: 14;
};

/** aerie_device_kind */
export declare const DeviceKind: {
  readonly CPU: 0;
  readonly INTEGRATED_GPU: 1;
  readonly VIRTUAL_GPU: 2;
  readonly DISCRETE_GPU: 3;
};

/** aerie_stage */
export declare const Stage: {
  /** the device is made ready; a driver may compile for a minute */
  readonly DEVICE: 0;
  /** weights of the model are loaded */
  readonly MODEL: 1;
  /** weights of a head or draft model are loaded */
  readonly HEAD: 2;
  /** the device is measured */
  readonly COSTS: 3;
};

/** aerie_finish */
export declare const Finish: {
  /** it is not finished */
  readonly NONE: 0;
  /** an end token or a stop text */
  readonly STOP: 1;
  /** max_tokens, or the context is full */
  readonly LENGTH: 2;
  /** also: another answer was begun, or the session rewound */
  readonly CANCELLED: 3;
  readonly FAILED: 4;
};

/** aerie_origin */
export declare const Origin: {
  /** chosen by the pass over the prompt */
  readonly AFTER_PROMPT: 0;
  /** drafted, and equal to the target's choice */
  readonly FROM_DRAFT: 1;
  /** the target's choice, where no draft was right */
  readonly FROM_TARGET: 2;
};
