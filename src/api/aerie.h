/* aerie: LLaMA-family models with EAGLE speculative decoding, as a library.
 *
 * All strings and paths are UTF-8 on every system. All functions keep to C: no exception, exit,
 * signal handler or print leaves them. A callback may throw a C++ exception, which ends the call
 * with AERIE_ERROR. It must not longjmp out of the library, because what the call holds, such as
 * the turn on the device, would never be released. The library stays in memory after dlclose.
 *
 * STATUS  Functions that can fail return a status. Unless it is AERIE_OK, a message of one line and
 * a cause are kept with the handle of the call, outputs are unchanged (except where a function says
 * otherwise), and the handle can be used again.
 *
 * STRUCTS  Every struct that you fill, or that is filled for you, begins with its size. The
 * aerie_..._init functions below set the size and zero everything else; zero means the default. So
 * structs can grow: a program that was built with an older header keeps working. A size below that
 * of the first release is refused.
 *
 * THREADS  A context and a model may be used from any thread, by several at once. A session may be
 * used by one thread at a time, except for aerie_session_cancel. Sessions of a model that are
 * stepped at the same time share the passes of its device.
 *
 * LIFETIMES  Strings that you pass are copied. Results belong to the handle and live as long as
 * the function says, except those that must be freed with aerie_free. Handles may be freed in any
 * order: a model stays loaded until its last session is freed. Every ..._free accepts NULL. */
#ifndef AERIE_H
#define AERIE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The version of this header: 10000 times the major number, plus 100 times the minor number, plus
 * the patch. aerie_version_number() has that of the library. */
#define AERIE_VERSION_NUMBER 200

#if defined(AERIE_BUILDS_LIBRARY) && defined(_WIN32)
#define AERIE_API __declspec(dllexport)
#elif defined(AERIE_BUILDS_LIBRARY) && defined(__GNUC__)
#define AERIE_API __attribute__((visibility("default")))
#else
#define AERIE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aerie_status {
    AERIE_OK = 0,
    AERIE_ERROR = 1,         /* a file, a device or a model that cannot be used */
    AERIE_USAGE = 2,         /* the request is impossible, or a handle is null */
    AERIE_OUT_OF_MEMORY = 3, /* on the host */
    AERIE_CANCELLED = 4      /* one of your callbacks asked for it */
} aerie_status;

/* Why a call failed, for programs that decide by it. New causes may come; treat those that you do
 * not know like AERIE_CAUSE_OTHER. */
typedef enum aerie_cause {
    AERIE_CAUSE_NONE = 0,           /* nothing has failed */
    AERIE_CAUSE_OTHER = 1,          /* only the message says it */
    AERIE_CAUSE_ARGUMENT = 2,       /* the request is impossible, or a handle is null */
    AERIE_CAUSE_TOO_LONG = 3,       /* the prompt has no room in the context: shorten it */
    AERIE_CAUSE_SESSIONS = 4,       /* the model has as many sessions as it was opened for */
    AERIE_CAUSE_NOT_FOUND = 5,      /* no such file, folder or model: offer to get it */
    AERIE_CAUSE_FILE = 6,           /* a file cannot be read or written: rights, a full disk */
    AERIE_CAUSE_DAMAGED = 7,        /* a file does not hold what it should: get it again */
    AERIE_CAUSE_UNSUPPORTED = 8,    /* aerie cannot run what the file holds: offer another model */
    AERIE_CAUSE_OTHER_MODEL = 9,    /* a saved session belongs to another model */
    AERIE_CAUSE_NO_DEVICE = 10,     /* no such device, or it cannot be used: offer another */
    AERIE_CAUSE_DEVICE_LOST = 11,   /* the device failed while it worked: open the model again */
    AERIE_CAUSE_DEVICE_MEMORY = 12, /* the device has too little memory: a smaller context, fewer
                                       sessions, a smaller model */
    AERIE_CAUSE_HOST_MEMORY = 13,   /* the host has too little memory */
    AERIE_CAUSE_CANCELLED = 14      /* one of your callbacks asked for it */
} aerie_cause;

typedef struct aerie_context aerie_context; /* one user's view of the library; cheap */
typedef struct aerie_model aerie_model;     /* a loaded model and its drafter */
typedef struct aerie_session aerie_session; /* a conversation: its text and KV cache */

AERIE_API const char* aerie_version(void);                    /* "0.2.0" */
AERIE_API const char* aerie_status_name(aerie_status status); /* "ok", "error", ... */
AERIE_API int32_t aerie_version_number(void);                 /* as AERIE_VERSION_NUMBER */
AERIE_API const char* aerie_cause_name(aerie_cause cause);    /* "none", "not found", ... */
AERIE_API void aerie_free(void* given);                       /* frees a result; NULL is ignored */

/* ---- context ----------------------------------------------------------------------------------
 */

AERIE_API aerie_status aerie_context_create(aerie_context** context);
AERIE_API void aerie_context_free(aerie_context* context);

/* The message of the newest call with this context that failed in this thread; "" if there was
 * none, or if a call with another context has failed since. Lives until this thread's next call
 * with a context. */
AERIE_API const char* aerie_context_message(const aerie_context* context);

/* The cause of the failure that aerie_context_message tells of. */
AERIE_API aerie_cause aerie_context_cause(const aerie_context* context);

/* For programs whose calls run in threads that they do not choose: the newest failure with this
 * context in any thread. Free *message with aerie_free; it is "" if nothing has failed. Either may
 * be NULL. */
AERIE_API aerie_status aerie_context_failure(const aerie_context* context, char** message,
                                             aerie_cause* cause);

typedef enum aerie_log_level { AERIE_LOG_INFO = 0, AERIE_LOG_WARNING = 1 } aerie_log_level;

/* Receives one line without a line break. Called from any thread, by one at a time; it must not
 * call the library. */
typedef void (*aerie_log_callback)(void* user, aerie_log_level level, const char* line);

/* Sets the callback for log lines of this context and its models; it is called until the context
 * is freed. NULL: no log. After this call the former callback is not called any more. */
AERIE_API aerie_status aerie_context_set_log(aerie_context* context, aerie_log_callback callback,
                                             void* user);

typedef enum aerie_device_kind {
    AERIE_DEVICE_CPU = 0,
    AERIE_DEVICE_INTEGRATED_GPU = 1,
    AERIE_DEVICE_VIRTUAL_GPU = 2,
    AERIE_DEVICE_DISCRETE_GPU = 3
} aerie_device_kind;

typedef struct aerie_device {
    size_t size;
    const char* name;        /* "cpu", "vulkan:0", "cuda:0": for aerie_model_options */
    const char* description; /* for messages */
    const char* details;     /* for messages: more lines, may be "" */
    const char* problem;     /* why it cannot be used; "" if it can */
    uint64_t memory_bytes;
    int32_t kind;    /* aerie_device_kind */
    int32_t threads; /* threads of a CPU, else 0 */
    int32_t is_best; /* whether it is the default device */
} aerie_device;

/* Devices are searched for once; their strings live as long as the context. */
AERIE_API aerie_status aerie_context_devices(aerie_context* context, size_t* count);
AERIE_API aerie_status aerie_context_device(aerie_context* context, size_t index,
                                            aerie_device* device);

/* A model that is on this machine. */
typedef struct aerie_listed_model {
    size_t size;
    const char* name;    /* opens it: for aerie_model_options */
    const char* path;    /* a folder or a .gguf file */
    const char* program; /* the program that keeps it: "aerie", "Hugging Face", "LM Studio",
                          * "llama.cpp", "Ollama"
                          */
    const char* heads;   /* names of the heads beside it, one a line; "" if there is none */
    uint64_t weight_bytes;
} aerie_listed_model;

/* Looks for the models at hand: those in the folder `models` (NULL: none) and the bundled ones,
 * then those that other programs keep. They are read by aerie_context_model until the next search
 * with this context; their strings live as long as the context. */
AERIE_API aerie_status aerie_context_models(aerie_context* context, const char* models,
                                            size_t* count);
AERIE_API aerie_status aerie_context_model(aerie_context* context, size_t index,
                                           aerie_listed_model* model);

/* ---- model ------------------------------------------------------------------------------------
 */

/* Reports the progress of loading. `stage` is a readable line such as "loading models/x: 12 of 99
 * MiB". A nonzero result ends loading with AERIE_CANCELLED. Called in the thread that opens the
 * model; it must not call the library. */
typedef int (*aerie_progress_callback)(void* user, const char* stage);

typedef enum aerie_stage {
    AERIE_STAGE_DEVICE = 0, /* the device is made ready; a driver may compile for a minute */
    AERIE_STAGE_MODEL = 1,  /* weights of the model are loaded */
    AERIE_STAGE_HEAD = 2,   /* weights of a head or draft model are loaded */
    AERIE_STAGE_COSTS = 3   /* the device is measured */
} aerie_stage;

/* The same in numbers: the bytes of weights that are loaded in this stage, and those of all; both
 * are 0 in other stages. The same rules hold. */
typedef int (*aerie_load_callback)(void* user, aerie_stage stage, uint64_t done, uint64_t total);

typedef struct aerie_model_options {
    size_t size;
    const char* model;  /* folder, .gguf file, name of a bundled model, org/name in the Hugging Face
                           cache. A plain name means a bundled model before a path: write "./x" for
                           a folder of the same name. Required. */
    const char* head;   /* head or draft model, named in the same way; NULL: one beside the model,
                           such as "MODEL-eagle" */
    const char* draft;  /* "none", "lookup", "lookahead", "chain", "eagle1", "eagle2", "eagle3",
                           "medusa", "hydra", "grafted", "model", or "best" (all heads beside the
                           model; formerly "auto", which is understood too); NULL: the default for
                           the head, "best" without one */
    const char* device; /* name of a device; NULL: the best */
    const char* weights; /* "f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"; NULL: as
                            stored */
    const char* draft_weights; /* the same for the head; NULL: chosen. Never changes a text. */
    const char* kv;            /* "f32", "f16"; NULL: "f16" */
    const char* models;        /* a folder that is searched for names before others; NULL: none */
    const char* cache;         /* folder for measurements of the device; NULL: the user's cache,
                                  "": nothing is kept */
    int32_t context;      /* most tokens of a session; 0: the model's own, or as many as half of
                             the device's memory holds */
    int32_t sessions;     /* most sessions at a time, all with memory of their own; 0: 1 */
    int32_t threads;      /* threads of a CPU device; 0: one per core */
    int32_t chain_length; /* tokens that "chain" always drafts; 0: sized by measurement */
    int32_t tree_nodes, tree_levels, tree_top_k; /* all 0: sized by measurement */
    aerie_progress_callback progress;            /* may be NULL */
    void* progress_user;
    aerie_load_callback load_progress; /* may be NULL */
    void* load_progress_user;
} aerie_model_options;

/* Memory in bytes, known before anything is loaded. */
typedef struct aerie_forecast {
    size_t size;
    uint64_t target_weights;
    uint64_t draft_weights;
    uint64_t kv_cache; /* for all sessions */
    uint64_t scratch;
    uint64_t program;
    uint64_t total;
    uint64_t device_memory;  /* memory of the device */
    int32_t fits;            /* whether the device is usable and has enough memory */
    int32_t context;         /* context of this forecast */
    int32_t largest_context; /* largest that would fit; 0: none */
} aerie_forecast;

AERIE_API aerie_status aerie_model_forecast(aerie_context* context,
                                            const aerie_model_options* options,
                                            aerie_forecast* forecast);

/* Loads a model. Messages of this function and of aerie_model_forecast are kept with the context.
 */
AERIE_API aerie_status aerie_model_open(aerie_context* context, const aerie_model_options* options,
                                        aerie_model** model);
AERIE_API void aerie_model_free(aerie_model* model);

/* Like aerie_context_message, for calls with this model. */
AERIE_API const char* aerie_model_message(const aerie_model* model);
AERIE_API aerie_cause aerie_model_cause(const aerie_model* model);
AERIE_API aerie_status aerie_model_failure(const aerie_model* model, char** message,
                                           aerie_cause* cause);

typedef struct aerie_model_info {
    size_t size;
    const char* path; /* path of the model */
    const char* head; /* path of the head or draft model; "" if there is none */
    const char* device;
    const char* device_description;
    const char* draft;      /* the method; "none" if it cannot draft */
    const int32_t* eos_ids; /* each of these ends a text */
    size_t eos_count;
    int32_t context;         /* most tokens of a session */
    int32_t trained_context; /* context that the model was trained for */
    int32_t vocab;           /* number of logits */
    int32_t tokens;          /* tokens of the tokenizer */
    int32_t bos;             /* -1: none */
    int32_t sessions;        /* most sessions at a time */
    int32_t can_draft;
    int32_t has_chat_template;
    int32_t has_system_role;   /* whether its chat template uses a system message */
    uint64_t parameters;       /* numbers in its weights */
    uint64_t weight_bytes;     /* memory of its weights on the device */
    const char* architecture;  /* "llama", "qwen3", ... */
    const char* weights;       /* types of the weights in its files: "f16", "q4_k, q6_k" */
    const char* chat_template; /* in Jinja; "" if there is none */
} aerie_model_info;

/* Strings and ids live as long as the model. */
AERIE_API aerie_status aerie_model_get_info(const aerie_model* model, aerie_model_info* info);

/* How tokens are chosen. All zero: always the likeliest token. */
typedef struct aerie_sampling {
    size_t size;
    float temperature; /* 0: the likeliest token */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 0: off */
    float min_p;       /* 0: off */
    float repetition;  /* penalty; 0 or 1: off */
    float frequency;   /* penalty; 0: off */
    float presence;    /* penalty; 0: off */
} aerie_sampling;

/* The model's own sampling, which holds for requests without one. Values that are off are 0, or 1
 * where that means the same. */
AERIE_API aerie_status aerie_model_get_sampling(const aerie_model* model, aerie_sampling* sampling);

enum {
    AERIE_TEXT_START = 1,  /* start of a text: BOS in front if the model wants it */
    AERIE_TEXT_SPECIAL = 2 /* special tokens in the text, such as <s>, are recognised */
};

/* The ids of a text with this many bytes (0: up to its NUL). Free *ids with aerie_free. `flags`:
 * sum of AERIE_TEXT_... values. */
AERIE_API aerie_status aerie_model_tokenize(const aerie_model* model, const char* text,
                                            size_t bytes, uint32_t flags, int32_t** ids,
                                            size_t* count);
/* The text of some ids, NUL-terminated. Malformed UTF-8 becomes U+FFFD; special tokens are left
 * out. Free *text with aerie_free. `bytes` may be NULL. */
AERIE_API aerie_status aerie_model_detokenize(const aerie_model* model, const int32_t* ids,
                                              size_t count, char** text, size_t* bytes);
/* The bytes of one token, which may be part of a character. There are none for special tokens and
 * unused ids. Not NUL-terminated; they live as long as the model. */
AERIE_API aerie_status aerie_model_token_bytes(const aerie_model* model, int32_t id,
                                               const char** bytes, size_t* count);

typedef struct aerie_chat_message {
    const char* role; /* "system", "user", "assistant", or another role of the template */
    const char* content;
} aerie_chat_message;

/* Renders a conversation with the model's chat template, up to the start of the answer, as text
 * and as ids. Either may be NULL (not wanted); free both with aerie_free. */
AERIE_API aerie_status aerie_model_render(const aerie_model* model,
                                          const aerie_chat_message* messages, size_t message_count,
                                          char** text, int32_t** ids, size_t* id_count);

/* ---- session ----------------------------------------------------------------------------------
 */

/* Fails if the model already has as many sessions as it was opened for. Messages are kept with the
 * model. */
AERIE_API aerie_status aerie_session_create(aerie_model* model, aerie_session** session);
AERIE_API void aerie_session_free(aerie_session* session);

/* The message of the newest call with this session that failed; "" if there was none. Lives until
 * the next call with the session. */
AERIE_API const char* aerie_session_message(const aerie_session* session);
AERIE_API aerie_cause aerie_session_cause(const aerie_session* session);

/* Changes the logits of the token after `text` before any other processing. -INFINITY forbids a
 * token; if every token is forbidden after the text that was chosen, the answer fails with
 * AERIE_ERROR. Called for each node of a draft tree, so it must be a function of the text alone. A
 * nonzero result ends the answer, and the call returns AERIE_CANCELLED. The callback must not call
 * the library, except aerie_session_cancel. */
typedef int (*aerie_logits_callback)(void* user, const int32_t* text, size_t count, float* logits,
                                     size_t vocab);

/* Reports the progress of a prompt: called before each pass over it, with the number of its tokens
 * that are in the KV cache by then and the number of all. A nonzero result cancels the answer, as
 * aerie_session_cancel does. Called in the thread of the step; it must not call the library. */
typedef int (*aerie_prompt_callback)(void* user, size_t done, size_t total);

typedef struct aerie_request {
    size_t size;
    /* The prompt: exactly one of the following four. It is the whole text so far, not only its new
     * part; the part that the session already holds is not run again. */
    const char* text;
    size_t text_bytes; /* 0: up to the NUL */
    const int32_t* ids;
    size_t id_count;
    const aerie_chat_message* messages; /* rendered with the model's chat template */
    size_t message_count;
    const char* conversation; /* JSON: a list of messages, or an object with messages, tools,
                                 documents, kwargs */

    const aerie_sampling* sampling; /* NULL: the model's own defaults */
    uint64_t seed;
    int32_t has_seed;         /* 0: a random seed is used; see aerie_answer */
    int32_t max_tokens;       /* 0: to the end of the context */
    const char* const* stops; /* texts that end the answer and are not part of it; none is empty */
    size_t stop_count;
    int32_t plain_text;     /* special tokens in `text`, such as <s>, are plain text */
    int32_t without_drafts; /* plain decoding: the same text, slower */
    int32_t ignore_eos;
    int32_t logprobs;     /* nonzero: reports the logprob of each token */
    int32_t alternatives; /* number of likeliest tokens to report for each place, with logprobs */
    aerie_logits_callback edit_logits; /* may be NULL */
    void* edit_user;
    aerie_prompt_callback prompt_progress; /* may be NULL */
    void* prompt_progress_user;
} aerie_request;

/* Begins an answer. An unfinished answer ends; its tokens stay in the session. */
AERIE_API aerie_status aerie_session_begin(aerie_session* session, const aerie_request* request);

/* The result of one step. */
typedef struct aerie_step {
    size_t size;
    int32_t more;     /* 0: the answer has ended */
    const char* text; /* new text, whole characters, NUL-terminated; may be "" */
    size_t text_bytes;
    size_t first_token; /* index of the first new token in the answer */
    size_t token_count; /* new tokens */
} aerie_step;

/* Continues the answer: the first step runs the prompt, each further step one cycle of draft and
 * verify. Steps of other threads that wait at the same time share its passes. `step` may be NULL;
 * its text lives until the next call with the session. If the step fails (device, damaged model),
 * the answer has ended.
 */
AERIE_API aerie_status aerie_session_step(aerie_session* session, aerie_step* step);

/* Called after each step; may read the session (message, token, cycle, answer, statistics, ids). A
 * nonzero result cancels the answer. */
typedef int (*aerie_step_callback)(void* user, aerie_session* session, const aerie_step* step);

/* Runs all remaining steps. `callback` may be NULL. Returns AERIE_OK also for a cancelled answer.
 */
AERIE_API aerie_status aerie_session_run(aerie_session* session, aerie_step_callback callback,
                                         void* user);

/* May be called from any thread. The running answer ends with its next step at the latest, or
 * between two passes of its prompt. Answers that begin later are not affected. */
AERIE_API void aerie_session_cancel(aerie_session* session);

typedef enum aerie_finish {
    AERIE_FINISH_NONE = 0,      /* it is not finished */
    AERIE_FINISH_STOP = 1,      /* an end token or a stop text */
    AERIE_FINISH_LENGTH = 2,    /* max_tokens, or the context is full */
    AERIE_FINISH_CANCELLED = 3, /* also: another answer was begun, or the session rewound */
    AERIE_FINISH_FAILED = 4
} aerie_finish;

typedef struct aerie_answer {
    size_t size;
    const char* text; /* so far, NUL-terminated; lives until the next call that changes the answer.
                         If the tokenizer includes the space before a word in its token, the space
                         of the first token is left out. */
    size_t text_bytes;
    size_t token_count; /* so far, including the tokens that ended the text */
    size_t prompt_tokens;
    size_t reused_tokens; /* tokens of the prompt that were not run again */
    uint64_t seed;
    int32_t finish; /* aerie_finish */
} aerie_answer;

/* This function and the three below report on the newest answer. They return AERIE_USAGE if there
 * is none. */
AERIE_API aerie_status aerie_session_answer(aerie_session* session, aerie_answer* answer);

typedef enum aerie_origin {
    AERIE_AFTER_PROMPT = 0, /* chosen by the pass over the prompt */
    AERIE_FROM_DRAFT = 1,   /* drafted, and equal to the target's choice */
    AERIE_FROM_TARGET = 2   /* the target's choice, where no draft was right */
} aerie_origin;

typedef struct aerie_token_logprob {
    int32_t id;
    float logprob; /* under the model's own distribution, natural logarithm */
} aerie_token_logprob;

typedef struct aerie_token {
    size_t size;
    int32_t id;
    int32_t origin;    /* aerie_origin; it is the target's choice in any case */
    int32_t depth;     /* in the draft tree, from 1 on; 0 if it was not drafted */
    float logprob;     /* NaN if it was not asked for */
    const char* bytes; /* as from aerie_model_token_bytes */
    size_t byte_count;
    const aerie_token_logprob* alternatives; /* best first; valid until the next call that
                                                changes the answer */
    size_t alternative_count;
} aerie_token;

AERIE_API aerie_status aerie_session_token(aerie_session* session, size_t index,
                                           aerie_token* token);

/* The newest cycle: a tree of drafted tokens, parents first. Node 0 is the token that was chosen
 * last before the cycle. After the step that runs the prompt, the tree is a meaningless root. */
typedef struct aerie_cycle {
    size_t size;
    size_t node_count;
    const int32_t* tokens;  /* for each node */
    const int32_t* parents; /* for each node; -1 for the root */
    const float* values;    /* for each node: the drafter's log-probability of its path; NULL if it
                               gives none */
    const int32_t* choices; /* the target's choice after each node; NULL if not known for all */
    const int32_t* path;    /* accepted nodes, from the root on */
    size_t path_count;
    int32_t next; /* the target's choice after the last accepted node */
} aerie_cycle;

/* The arrays in `cycle` live until the next call that changes the answer. */
AERIE_API aerie_status aerie_session_cycle(aerie_session* session, aerie_cycle* cycle);

typedef struct aerie_statistics {
    size_t size;
    int32_t cycles;       /* cycles of draft and verify */
    int32_t cycle_tokens; /* put out by them; one more came from the prompt */
    int32_t plain_cycles; /* cycles without a draft */
    int32_t depth_count;
    const int32_t* accepted_by_depth; /* [d]: cycles that put out a drafted token of depth d + 1;
                                         valid until the next call that changes the answer */
    int64_t cycle_nodes;              /* nodes verified in all cycles */
    double tau;                       /* acceptance length: tokens per cycle */
    double tokens_per_second;         /* without the time for the prompt */
    double prefill_seconds, decode_seconds;
    double draft_seconds, verify_seconds, sample_seconds, host_seconds; /* parts of decoding */
} aerie_statistics;

AERIE_API aerie_status aerie_session_statistics(aerie_session* session,
                                                aerie_statistics* statistics);

/* All ids in the session: prompt, answer, and so on. `computed` (may be NULL) receives the number
 * of ids in the KV cache. The ids live until the next call that changes the session. */
AERIE_API aerie_status aerie_session_ids(aerie_session* session, const int32_t** ids, size_t* count,
                                         size_t* computed);

/* Cuts the session to its first tokens. Later answers are as if it had never been longer. An
 * unfinished answer ends. */
AERIE_API aerie_status aerie_session_rewind(aerie_session* session, size_t length);

/* Makes another session that begins with the first tokens of this one, and shares the KV cache of
 * these tokens. */
AERIE_API aerie_status aerie_session_fork(aerie_session* session, size_t length,
                                          aerie_session** fork);

/* Saves the whole session to a file. An existing file is replaced only when everything is written;
 * its mode and group are kept. A new file is readable only for its owner. */
AERIE_API aerie_status aerie_session_save(aerie_session* session, const char* path);

/* Loads a saved session. Fails if the file is damaged or belongs to another model. If the saved KV
 * cache cannot be used here (another device, types or arithmetic), the log gets a warning, and the
 * ids are run again when they are needed. A model is identified by all bytes of its weights; these
 * are read for it once, and again if a file's size or time has changed. Messages are kept with the
 * model. */
AERIE_API aerie_status aerie_session_load(aerie_model* model, const char* path,
                                          aerie_session** session);

/* ---- initial values of structs -----------------------------------------------------------------
 */

#define AERIE_DEFINE_INIT(type)            \
    static inline type type##_init(void) { \
        type value;                        \
        memset(&value, 0, sizeof(value));  \
        value.size = sizeof(value);        \
        return value;                      \
    }
AERIE_DEFINE_INIT(aerie_device)
AERIE_DEFINE_INIT(aerie_model_options)
AERIE_DEFINE_INIT(aerie_forecast)
AERIE_DEFINE_INIT(aerie_model_info)
AERIE_DEFINE_INIT(aerie_sampling)
AERIE_DEFINE_INIT(aerie_request)
AERIE_DEFINE_INIT(aerie_step)
AERIE_DEFINE_INIT(aerie_answer)
AERIE_DEFINE_INIT(aerie_token)
AERIE_DEFINE_INIT(aerie_cycle)
AERIE_DEFINE_INIT(aerie_statistics)
AERIE_DEFINE_INIT(aerie_listed_model)
#undef AERIE_DEFINE_INIT

/* The same for languages that cannot call the functions above, which are not in the library: each
 * zeroes `size` bytes, your size of the struct, writes the size in front, and returns the size that
 * this library has. If `value` is NULL, or `size` is too small to hold a size, nothing is written.
 */
AERIE_API size_t aerie_device_init_at(aerie_device* value, size_t size);
AERIE_API size_t aerie_listed_model_init_at(aerie_listed_model* value, size_t size);
AERIE_API size_t aerie_model_options_init_at(aerie_model_options* value, size_t size);
AERIE_API size_t aerie_forecast_init_at(aerie_forecast* value, size_t size);
AERIE_API size_t aerie_model_info_init_at(aerie_model_info* value, size_t size);
AERIE_API size_t aerie_sampling_init_at(aerie_sampling* value, size_t size);
AERIE_API size_t aerie_request_init_at(aerie_request* value, size_t size);
AERIE_API size_t aerie_step_init_at(aerie_step* value, size_t size);
AERIE_API size_t aerie_answer_init_at(aerie_answer* value, size_t size);
AERIE_API size_t aerie_token_init_at(aerie_token* value, size_t size);
AERIE_API size_t aerie_cycle_init_at(aerie_cycle* value, size_t size);
AERIE_API size_t aerie_statistics_init_at(aerie_statistics* value, size_t size);

#ifdef __cplusplus
}
#endif

#endif
