/* aerie: LLaMA-family models with EAGLE speculative decoding, as a library.
 *
 * All strings and paths are UTF-8 on every system. All functions return within the border of C: no
 * exception, exit, signal handler or print comes out of them. A callback may throw a C++ exception,
 * which ends the call with AERIE_ERROR; it must not longjmp out of the library, which would never
 * give back what the call has taken, such as the turn on the device. The library stays in memory
 * when it is closed by dlclose.
 *
 * STATUS  Functions that can fail return a status. Unless it is AERIE_OK, one line of message is
 * kept for the handle that the function was called with, outputs are as they were (but where a
 * function says otherwise), and the handle can be used again.
 *
 * STRUCTS  Every struct that you fill or that is filled for you begins with its size. The
 * aerie_..._init functions below set it, and zero everything else, which means the default. So
 * structs can grow: a program that was built with an older header goes on to work. A size below
 * that of the first release is refused.
 *
 * THREADS  A context and a model may be used from any thread, by several at once. A session may be
 * used by one thread at a time, but for aerie_session_cancel. The sessions of a model take turns on
 * its device, a step each.
 *
 * LIFETIMES  Strings that you give are copied. What you get belongs to the handle and lives as its
 * function says, but for what is to be given back with aerie_free. Handles may be freed in any
 * order: a model stays loaded until its last session is freed. Every ..._free takes NULL. */
#ifndef AERIE_H
#define AERIE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
    AERIE_USAGE = 2,         /* what was asked for cannot be done, or a null handle */
    AERIE_OUT_OF_MEMORY = 3, /* of the host */
    AERIE_CANCELLED = 4      /* a callback of yours said so */
} aerie_status;

typedef struct aerie_context aerie_context; /* the library as one user of it sees it; cheap */
typedef struct aerie_model aerie_model;     /* a loaded model, and what drafts for it */
typedef struct aerie_session aerie_session; /* a conversation: a text, and all computed for it */

AERIE_API const char* aerie_version(void);                    /* "0.2.0" */
AERIE_API const char* aerie_status_name(aerie_status status); /* "ok", "error", ... */
AERIE_API void aerie_free(void* given); /* what a function says to give back; NULL is nothing */

/* ---- context ----------------------------------------------------------------------------------
 */

AERIE_API aerie_status aerie_context_create(aerie_context** context);
AERIE_API void aerie_context_free(aerie_context* context);

/* Of the newest call with this context that failed in this thread; "" if there was none, or if one
 * with another context has failed since. Lives until this thread's next call with a context. */
AERIE_API const char* aerie_context_message(const aerie_context* context);

typedef enum aerie_log_level { AERIE_LOG_INFO = 0, AERIE_LOG_WARNING = 1 } aerie_log_level;

/* One line, without its break. Called from whatever thread works, by one at a time; it must not
 * call the library. */
typedef void (*aerie_log_callback)(void* user, aerie_log_level level, const char* line);

/* What this context and its models have to say, until the context is freed. NULL: nothing. After
 * the call the callback before it is not called any more. */
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
    const char* description; /* for people */
    const char* details;     /* for people: more lines, may be "" */
    const char* problem;     /* why it cannot be used; "" if it can */
    uint64_t memory_bytes;
    int32_t kind;    /* aerie_device_kind */
    int32_t threads; /* of a CPU, else 0 */
    int32_t is_best; /* what a model is opened on where no device is named */
} aerie_device;

/* Devices are looked for once; the strings of them live as long as the context. */
AERIE_API aerie_status aerie_context_devices(aerie_context* context, size_t* count);
AERIE_API aerie_status aerie_context_device(aerie_context* context, size_t index,
                                            aerie_device* device);

/* ---- model ------------------------------------------------------------------------------------
 */

/* Nonzero: loading ends with AERIE_CANCELLED. `stage` is a line for people, such as "loading
 * models/x: 12 of 99 MiB". Called in the thread that opens; it must not call the library. */
typedef int (*aerie_progress_callback)(void* user, const char* stage);

typedef struct aerie_model_options {
    size_t size;
    const char* model;  /* folder, .gguf file, name of a bundled model, org/name in the Hugging Face
                           cache. A plain name is a bundled model's before it is a path: write
                           "./x" for a folder of such a name. Must be given. */
    const char* head;   /* what drafts, named alike; NULL: what lies beside the model, as
                           "MODEL-eagle" does */
    const char* draft;  /* "none", "lookup", "lookahead", "chain", "eagle1", "eagle2",
                           "eagle3", "medusa", "hydra", "grafted", "model", "auto": all that lie
                           beside the model; NULL: what suits the head, "auto" without one */
    const char* device; /* by its name; NULL: the best */
    const char* weights;       /* "f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"; NULL: as stored */
    const char* draft_weights; /* the same of the head; NULL: chosen. Never changes a text. */
    const char* kv;            /* "f32", "f16"; NULL: "f16" */
    const char* models;        /* one more folder, the first to look for names in; NULL: none */
    const char* cache;         /* folder where measurements of the device are kept; NULL: the
                                  user's cache, "": nothing is kept */
    int32_t context;      /* most tokens of a session; 0: 4096, or the model's if that is less */
    int32_t sessions;     /* most that there are at a time, memory is taken for all; 0: 1 */
    int32_t threads;      /* of a CPU device; 0: one per core */
    int32_t chain_length; /* drafts of "chain"; 0: 5 */
    int32_t tree_nodes, tree_levels, tree_top_k; /* all 0: trees chosen by measurement */
    aerie_progress_callback progress;            /* may be NULL */
    void* progress_user;
} aerie_model_options;

/* Bytes, known before anything is loaded. */
typedef struct aerie_forecast {
    size_t size;
    uint64_t target_weights;
    uint64_t draft_weights;
    uint64_t kv_cache; /* of all sessions */
    uint64_t scratch;
    uint64_t program;
    uint64_t total;
    uint64_t device_memory;  /* that the device has */
    int32_t fits;            /* whether the device can be used and has so much */
    int32_t context;         /* that the forecast is for */
    int32_t largest_context; /* that would fit; 0: none */
} aerie_forecast;

AERIE_API aerie_status aerie_model_forecast(aerie_context* context,
                                            const aerie_model_options* options,
                                            aerie_forecast* forecast);

/* Loads a model. Messages of both are with the context. */
AERIE_API aerie_status aerie_model_open(aerie_context* context, const aerie_model_options* options,
                                        aerie_model** model);
AERIE_API void aerie_model_free(aerie_model* model);

/* As aerie_context_message, for calls with this model. */
AERIE_API const char* aerie_model_message(const aerie_model* model);

typedef struct aerie_model_info {
    size_t size;
    const char* path; /* where it was found */
    const char* head; /* where what drafts was found; "" if nothing does */
    const char* device;
    const char* device_description;
    const char* draft;      /* the method; "none" if it cannot draft */
    const int32_t* eos_ids; /* any of these ends a text */
    size_t eos_count;
    int32_t context;         /* most tokens of a session */
    int32_t trained_context; /* what the model itself takes */
    int32_t vocab;           /* logits of a position */
    int32_t tokens;          /* that the tokenizer knows */
    int32_t bos;             /* -1: none */
    int32_t sessions;        /* most at a time */
    int32_t can_draft;
    int32_t has_chat_template;
} aerie_model_info;

/* Strings and ids live as long as the model. */
AERIE_API aerie_status aerie_model_get_info(const aerie_model* model, aerie_model_info* info);

enum {
    AERIE_TEXT_START = 1,  /* as a whole text begins: with BOS in front where the model wants it */
    AERIE_TEXT_SPECIAL = 2 /* special tokens in the text, such as <s>, are read as such */
};

/* The ids of a text of so many bytes (0: up to its NUL). Give *ids back with aerie_free. `flags`:
 * AERIE_TEXT_..., added. */
AERIE_API aerie_status aerie_model_tokenize(const aerie_model* model, const char* text,
                                            size_t bytes, uint32_t flags, int32_t** ids,
                                            size_t* count);
/* The text of some ids, NUL-terminated; what is no UTF-8 becomes U+FFFD, special tokens nothing.
 * Give *text back with aerie_free. `bytes` may be NULL. */
AERIE_API aerie_status aerie_model_detokenize(const aerie_model* model, const int32_t* ids,
                                              size_t count, char** text, size_t* bytes);
/* The bytes of one token, which may be a part of a character; none for special tokens and ids that
 * stand for nothing. Not NUL-terminated; they live as long as the model. */
AERIE_API aerie_status aerie_model_token_bytes(const aerie_model* model, int32_t id,
                                               const char** bytes, size_t* count);

typedef struct aerie_chat_message {
    const char* role; /* "system", "user", "assistant", or what else the template knows */
    const char* content;
} aerie_chat_message;

/* A conversation as the model's chat template writes it, up to where the answer begins: its text
 * and its ids. Either may be NULL (not wanted); both are to be given back with aerie_free. */
AERIE_API aerie_status aerie_model_render(const aerie_model* model,
                                          const aerie_chat_message* messages, size_t message_count,
                                          char** text, int32_t** ids, size_t* id_count);

/* ---- session ----------------------------------------------------------------------------------
 */

/* Fails if the model has as many as it was opened for. Messages are with the model. */
AERIE_API aerie_status aerie_session_create(aerie_model* model, aerie_session** session);
AERIE_API void aerie_session_free(aerie_session* session);

/* Of the newest call with this session that failed; "" if there was none. Lives until the next call
 * with it. */
AERIE_API const char* aerie_session_message(const aerie_session* session);

/* How tokens are chosen. All zero: always the likeliest one. */
typedef struct aerie_sampling {
    size_t size;
    float temperature; /* 0: the likeliest */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 0: off */
    float min_p;       /* 0: off */
    float repetition;  /* penalty; 0 or 1: off */
    float frequency;   /* penalty; 0: off */
    float presence;    /* penalty; 0: off */
} aerie_sampling;

/* Changes the logits of what may follow `text` before anything else is done to them; -INFINITY
 * forbids a token; where it forbids every token after the text that is chosen, the answer fails
 * with AERIE_ERROR. Called for each node of a drafted tree, so it must be a function of the text
 * alone. Nonzero: the answer ends, the call returns AERIE_CANCELLED. It must not call the library
 * but for aerie_session_cancel. */
typedef int (*aerie_logits_callback)(void* user, const int32_t* text, size_t count, float* logits,
                                     size_t vocab);

typedef struct aerie_request {
    size_t size;
    /* The prompt: one of these four. It is the whole text so far and not what is new of it; what
     * the session holds already is not read again. */
    const char* text;
    size_t text_bytes; /* 0: up to the NUL */
    const int32_t* ids;
    size_t id_count;
    const aerie_chat_message* messages; /* by the model's chat template */
    size_t message_count;
    const char* conversation; /* JSON: a list of messages, or an object with messages, tools,
                                 documents, kwargs */

    const aerie_sampling* sampling; /* NULL: the model's own defaults */
    uint64_t seed;
    int32_t has_seed;         /* else a random one is taken, and told */
    int32_t max_tokens;       /* 0: to the end of the context */
    const char* const* stops; /* texts that end the answer, and are no part of it; none is empty */
    size_t stop_count;
    int32_t plain_text;     /* special tokens in `text`, such as <s>, are plain text */
    int32_t without_drafts; /* plain decoding: the same text, slower */
    int32_t ignore_eos;
    int32_t logprobs;     /* of each token */
    int32_t alternatives; /* so many likeliest tokens in the place of each, with logprobs */
    aerie_logits_callback edit_logits; /* may be NULL */
    void* edit_user;
} aerie_request;

/* Begins an answer; one that was in the making is over, its tokens stay in the session. */
AERIE_API aerie_status aerie_session_begin(aerie_session* session, const aerie_request* request);

/* What a step brought. */
typedef struct aerie_step {
    size_t size;
    int32_t more;     /* 0: the answer has ended */
    const char* text; /* new text, whole characters, NUL-terminated; may be "" */
    size_t text_bytes;
    size_t first_token; /* index in the answer of the first new one */
    size_t token_count; /* new ones */
} aerie_step;

/* Goes on with the answer: reads the prompt at first, then runs one cycle of draft and verify.
 * Waits until it is this session's turn. `step` may be NULL; its text lives until the next call
 * with the session. If it fails (device, damaged model) the answer is over. */
AERIE_API aerie_status aerie_session_step(aerie_session* session, aerie_step* step);

/* Called after each step; may read the session (message, token, cycle, answer, statistics, ids).
 * Nonzero cancels. */
typedef int (*aerie_step_callback)(void* user, aerie_session* session, const aerie_step* step);

/* All steps that are left. `callback` may be NULL. An answer that was cancelled is AERIE_OK. */
AERIE_API aerie_status aerie_session_run(aerie_session* session, aerie_step_callback callback,
                                         void* user);

/* From any thread: the answer in the making ends with its next step at the latest, and within a
 * prompt with its next piece. Does nothing to answers that are begun later. */
AERIE_API void aerie_session_cancel(aerie_session* session);

typedef enum aerie_finish {
    AERIE_FINISH_NONE = 0,      /* it goes on */
    AERIE_FINISH_STOP = 1,      /* an end token or a stop text */
    AERIE_FINISH_LENGTH = 2,    /* max_tokens, or the context is full */
    AERIE_FINISH_CANCELLED = 3, /* or another answer was begun, or the session rewound */
    AERIE_FINISH_FAILED = 4
} aerie_finish;

typedef struct aerie_answer {
    size_t size;
    const char* text; /* so far, NUL-terminated; lives until the next call that changes the answer.
                         With tokenizers that spell words with the space before them it does not
                         begin with that of its first token. */
    size_t text_bytes;
    size_t token_count; /* so far; those that ended the text are among them */
    size_t prompt_tokens;
    size_t reused_tokens; /* of the prompt, that were not read again */
    uint64_t seed;
    int32_t finish; /* aerie_finish */
} aerie_answer;

/* Of the newest answer; AERIE_USAGE if there is none. So the other three. */
AERIE_API aerie_status aerie_session_answer(aerie_session* session, aerie_answer* answer);

typedef enum aerie_origin {
    AERIE_AFTER_PROMPT = 0, /* chosen when the prompt had been read */
    AERIE_FROM_DRAFT = 1,   /* drafted, and found to be the target's choice */
    AERIE_FROM_TARGET = 2   /* the target's own, where no draft fitted any more */
} aerie_origin;

typedef struct aerie_token_logprob {
    int32_t id;
    float logprob; /* of the model's own distribution, natural logarithm */
} aerie_token_logprob;

typedef struct aerie_token {
    size_t size;
    int32_t id;
    int32_t origin;    /* aerie_origin; who chose it is always the target */
    int32_t depth;     /* in the draft's tree, from 1 on; 0 if it is from none */
    float logprob;     /* NaN if not asked for */
    const char* bytes; /* as aerie_model_token_bytes has them */
    size_t byte_count;
    const aerie_token_logprob* alternatives; /* the best first; until the next call that changes
                                                the answer */
    size_t alternative_count;
} aerie_token;

AERIE_API aerie_status aerie_session_token(aerie_session* session, size_t index,
                                           aerie_token* token);

/* The newest cycle: a tree of drafted tokens, parents first. Node 0 is the token that was chosen
 * before it. After the step that reads the prompt there is a bare root that says nothing. */
typedef struct aerie_cycle {
    size_t size;
    size_t node_count;
    const int32_t* tokens;  /* of each node */
    const int32_t* parents; /* of each node; -1: the root's */
    const float* values;    /* what the drafter thought of each: log-probability of its path; NULL
                               if it has no opinion */
    const int32_t* choices; /* what the target chose after each node; NULL if not known for all */
    const int32_t* path;    /* nodes that were accepted, from the root on */
    size_t path_count;
    int32_t next; /* what the target chose after the last of them */
} aerie_cycle;

/* Its arrays live until the next call that changes the answer. */
AERIE_API aerie_status aerie_session_cycle(aerie_session* session, aerie_cycle* cycle);

typedef struct aerie_statistics {
    size_t size;
    int32_t cycles;       /* of draft and verify */
    int32_t cycle_tokens; /* that they put out; one more came from the prompt */
    int32_t plain_cycles; /* without a draft */
    int32_t depth_count;
    const int32_t* accepted_by_depth; /* [d]: cycles that put out a drafted token of depth d + 1;
                                         until the next call that changes the answer */
    int64_t cycle_nodes;              /* verified in all cycles */
    double tau;                       /* tokens per cycle */
    double tokens_per_second;         /* without the reading of the prompt */
    double prefill_seconds, decode_seconds;
    double draft_seconds, verify_seconds, sample_seconds, host_seconds; /* parts of decoding */
} aerie_statistics;

AERIE_API aerie_status aerie_session_statistics(aerie_session* session,
                                                aerie_statistics* statistics);

/* All ids that the session holds: prompt, answer, ...; and how many of them are computed (may be
 * NULL). They live until the next call that changes the session. */
AERIE_API aerie_status aerie_session_ids(aerie_session* session, const int32_t** ids, size_t* count,
                                         size_t* computed);

/* Cuts the session to its first tokens. What is asked of it then is answered as if it had never
 * been longer. An answer in the making is over. */
AERIE_API aerie_status aerie_session_rewind(aerie_session* session, size_t length);

/* Another session that begins with the first tokens of this one, and shares what was computed for
 * them. */
AERIE_API aerie_status aerie_session_fork(aerie_session* session, size_t length,
                                          aerie_session** fork);

/* The whole session in a file, at once or not at all: a file that is there is replaced only when
 * all is written, and hands its mode and group on. A new file is readable for its owner alone. */
AERIE_API aerie_status aerie_session_save(aerie_session* session, const char* path);

/* A session as it was saved; refused if the file is damaged or of another model. Where what was
 * computed is of no use here (another device, types or arithmetic) the log gets a warning, and the
 * ids are read anew when they are needed. A model is known by all bytes of its weights: they are
 * read for it once, and again when a file's size or time has changed. Messages are with the model.
 */
AERIE_API aerie_status aerie_session_load(aerie_model* model, const char* path,
                                          aerie_session** session);

/* ---- structs as they are before they are filled ------------------------------------------------
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
#undef AERIE_DEFINE_INIT

#ifdef __cplusplus
}
#endif

#endif
