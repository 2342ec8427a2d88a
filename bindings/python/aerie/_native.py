"""The C library as ctypes sees it. Written by bindings/generate.py from src/api/aerie.h. Do not edit."""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)
from enum import IntEnum

VERSION_NUMBER = 200
TEXT_START = 1
TEXT_SPECIAL = 2


class Status(IntEnum):
    """aerie_status."""
    OK = 0
    ERROR = 1  # a file, a device or a model that cannot be used
    USAGE = 2  # the request is impossible, or a handle is null
    OUT_OF_MEMORY = 3  # on the host
    CANCELLED = 4  # one of your callbacks asked for it


class Cause(IntEnum):
    """Why a call failed, for programs that decide by it. New causes may come; treat those that you do not know like AERIE_CAUSE_OTHER."""
    NONE = 0  # nothing has failed
    OTHER = 1  # only the message says it
    ARGUMENT = 2  # the request is impossible, or a handle is null
    TOO_LONG = 3  # the prompt has no room in the context: shorten it
    SESSIONS = 4  # the model has as many sessions as it was opened for
    NOT_FOUND = 5  # no such file, folder or model: offer to get it
    FILE = 6  # a file cannot be read or written: rights, a full disk
    DAMAGED = 7  # a file does not hold what it should: get it again
    UNSUPPORTED = 8  # aerie cannot run what the file holds: offer another model
    OTHER_MODEL = 9  # a saved session belongs to another model
    NO_DEVICE = 10  # no such device, or it cannot be used: offer another
    DEVICE_LOST = 11  # the device failed while it worked: open the model again
    DEVICE_MEMORY = 12  # the device has too little memory: a smaller context, fewer sessions, a smaller model
    HOST_MEMORY = 13  # the host has too little memory
    CANCELLED = 14  # one of your callbacks asked for it


class LogLevel(IntEnum):
    """aerie_log_level."""
    INFO = 0
    WARNING = 1


class DeviceKind(IntEnum):
    """aerie_device_kind."""
    CPU = 0
    INTEGRATED_GPU = 1
    VIRTUAL_GPU = 2
    DISCRETE_GPU = 3


class Stage(IntEnum):
    """aerie_stage."""
    DEVICE = 0  # the device is made ready; a driver may compile for a minute
    MODEL = 1  # weights of the model are loaded
    HEAD = 2  # weights of a head or draft model are loaded
    COSTS = 3  # the device is measured


class Finish(IntEnum):
    """aerie_finish."""
    NONE = 0  # it is not finished
    STOP = 1  # an end token or a stop text
    LENGTH = 2  # max_tokens, or the context is full
    CANCELLED = 3  # also: another answer was begun, or the session rewound
    FAILED = 4


class Origin(IntEnum):
    """aerie_origin."""
    AFTER_PROMPT = 0  # chosen by the pass over the prompt
    FROM_DRAFT = 1  # drafted, and equal to the target's choice
    FROM_TARGET = 2  # the target's choice, where no draft was right


log_callback = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
progress_callback = CFUNCTYPE(c_int, c_void_p, c_char_p)
load_callback = CFUNCTYPE(c_int, c_void_p, c_int, c_uint64, c_uint64)
logits_callback = CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_float), c_size_t)
prompt_callback = CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t)
class device(Structure):
    """aerie_device."""
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("description", c_char_p),
        ("details", c_char_p),
        ("problem", c_char_p),
        ("memory_bytes", c_uint64),
        ("kind", c_int32),
        ("threads", c_int32),
        ("is_best", c_int32),
    ]


class listed_model(Structure):
    """A model that is on this machine."""
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("path", c_char_p),
        ("program", c_char_p),
        ("heads", c_char_p),
        ("weight_bytes", c_uint64),
    ]


class model_options(Structure):
    """aerie_model_options."""
    _fields_ = [
        ("size", c_size_t),
        ("model", c_char_p),
        ("head", c_char_p),
        ("draft", c_char_p),
        ("device", c_char_p),
        ("weights", c_char_p),
        ("draft_weights", c_char_p),
        ("kv", c_char_p),
        ("models", c_char_p),
        ("cache", c_char_p),
        ("context", c_int32),
        ("sessions", c_int32),
        ("threads", c_int32),
        ("chain_length", c_int32),
        ("tree_nodes", c_int32),
        ("tree_levels", c_int32),
        ("tree_top_k", c_int32),
        ("progress", progress_callback),
        ("progress_user", c_void_p),
        ("load_progress", load_callback),
        ("load_progress_user", c_void_p),
    ]


class forecast(Structure):
    """Memory in bytes, known before anything is loaded."""
    _fields_ = [
        ("size", c_size_t),
        ("target_weights", c_uint64),
        ("draft_weights", c_uint64),
        ("kv_cache", c_uint64),
        ("scratch", c_uint64),
        ("program", c_uint64),
        ("total", c_uint64),
        ("device_memory", c_uint64),
        ("fits", c_int32),
        ("context", c_int32),
        ("largest_context", c_int32),
    ]


class model_info(Structure):
    """aerie_model_info."""
    _fields_ = [
        ("size", c_size_t),
        ("path", c_char_p),
        ("head", c_char_p),
        ("device", c_char_p),
        ("device_description", c_char_p),
        ("draft", c_char_p),
        ("eos_ids", POINTER(c_int32)),
        ("eos_count", c_size_t),
        ("context", c_int32),
        ("trained_context", c_int32),
        ("vocab", c_int32),
        ("tokens", c_int32),
        ("bos", c_int32),
        ("sessions", c_int32),
        ("can_draft", c_int32),
        ("has_chat_template", c_int32),
        ("has_system_role", c_int32),
        ("parameters", c_uint64),
        ("weight_bytes", c_uint64),
        ("architecture", c_char_p),
        ("weights", c_char_p),
        ("chat_template", c_char_p),
    ]


class sampling(Structure):
    """How tokens are chosen. All zero: always the likeliest token."""
    _fields_ = [
        ("size", c_size_t),
        ("temperature", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("repetition", c_float),
        ("frequency", c_float),
        ("presence", c_float),
    ]


class chat_message(Structure):
    """aerie_chat_message."""
    _fields_ = [
        ("role", c_char_p),
        ("content", c_char_p),
    ]


class request(Structure):
    """aerie_request."""
    _fields_ = [
        ("size", c_size_t),
        ("text", c_void_p),
        ("text_bytes", c_size_t),
        ("ids", POINTER(c_int32)),
        ("id_count", c_size_t),
        ("messages", POINTER(chat_message)),
        ("message_count", c_size_t),
        ("conversation", c_char_p),
        ("sampling", POINTER(sampling)),
        ("seed", c_uint64),
        ("has_seed", c_int32),
        ("max_tokens", c_int32),
        ("stops", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("plain_text", c_int32),
        ("without_drafts", c_int32),
        ("ignore_eos", c_int32),
        ("logprobs", c_int32),
        ("alternatives", c_int32),
        ("edit_logits", logits_callback),
        ("edit_user", c_void_p),
        ("prompt_progress", prompt_callback),
        ("prompt_progress_user", c_void_p),
    ]


class step(Structure):
    """The result of one step."""
    _fields_ = [
        ("size", c_size_t),
        ("more", c_int32),
        ("text", c_void_p),
        ("text_bytes", c_size_t),
        ("first_token", c_size_t),
        ("token_count", c_size_t),
    ]


class answer(Structure):
    """aerie_answer."""
    _fields_ = [
        ("size", c_size_t),
        ("text", c_void_p),
        ("text_bytes", c_size_t),
        ("token_count", c_size_t),
        ("prompt_tokens", c_size_t),
        ("reused_tokens", c_size_t),
        ("seed", c_uint64),
        ("finish", c_int32),
    ]


class token_logprob(Structure):
    """aerie_token_logprob."""
    _fields_ = [
        ("id", c_int32),
        ("logprob", c_float),
    ]


class token(Structure):
    """aerie_token."""
    _fields_ = [
        ("size", c_size_t),
        ("id", c_int32),
        ("origin", c_int32),
        ("depth", c_int32),
        ("logprob", c_float),
        ("bytes", c_void_p),
        ("byte_count", c_size_t),
        ("alternatives", POINTER(token_logprob)),
        ("alternative_count", c_size_t),
    ]


class cycle(Structure):
    """The newest cycle: a tree of drafted tokens, parents first. Node 0 is the token that was chosen last before the cycle. After the step that runs the prompt, the tree is a meaningless root."""
    _fields_ = [
        ("size", c_size_t),
        ("node_count", c_size_t),
        ("tokens", POINTER(c_int32)),
        ("parents", POINTER(c_int32)),
        ("values", POINTER(c_float)),
        ("choices", POINTER(c_int32)),
        ("path", POINTER(c_int32)),
        ("path_count", c_size_t),
        ("next", c_int32),
    ]


class statistics(Structure):
    """aerie_statistics."""
    _fields_ = [
        ("size", c_size_t),
        ("cycles", c_int32),
        ("cycle_tokens", c_int32),
        ("plain_cycles", c_int32),
        ("depth_count", c_int32),
        ("accepted_by_depth", POINTER(c_int32)),
        ("cycle_nodes", c_int64),
        ("tau", c_double),
        ("tokens_per_second", c_double),
        ("prefill_seconds", c_double),
        ("decode_seconds", c_double),
        ("draft_seconds", c_double),
        ("verify_seconds", c_double),
        ("sample_seconds", c_double),
        ("host_seconds", c_double),
    ]


step_callback = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(step))
SIZES = {
    device: 64,
    listed_model: 48,
    model_options: 144,
    forecast: 80,
    model_info: 144,
    sampling: 40,
    chat_message: 16,
    request: 160,
    step: 48,
    answer: 64,
    token_logprob: 8,
    token: 56,
    cycle: 72,
    statistics: 104,
}
FUNCTIONS = {
    "aerie_version": (c_char_p, []),
    "aerie_status_name": (c_char_p, [c_int]),
    "aerie_version_number": (c_int32, []),
    "aerie_cause_name": (c_char_p, [c_int]),
    "aerie_free": (None, [c_void_p]),
    "aerie_context_create": (c_int, [POINTER(c_void_p)]),
    "aerie_context_free": (None, [c_void_p]),
    "aerie_context_message": (c_char_p, [c_void_p]),
    "aerie_context_cause": (c_int, [c_void_p]),
    "aerie_context_failure": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_int)]),
    "aerie_context_set_log": (c_int, [c_void_p, log_callback, c_void_p]),
    "aerie_context_devices": (c_int, [c_void_p, POINTER(c_size_t)]),
    "aerie_context_device": (c_int, [c_void_p, c_size_t, POINTER(device)]),
    "aerie_context_models": (c_int, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "aerie_context_model": (c_int, [c_void_p, c_size_t, POINTER(listed_model)]),
    "aerie_model_forecast": (c_int, [c_void_p, POINTER(model_options), POINTER(forecast)]),
    "aerie_model_open": (c_int, [c_void_p, POINTER(model_options), POINTER(c_void_p)]),
    "aerie_model_free": (None, [c_void_p]),
    "aerie_model_message": (c_char_p, [c_void_p]),
    "aerie_model_cause": (c_int, [c_void_p]),
    "aerie_model_failure": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_int)]),
    "aerie_model_get_info": (c_int, [c_void_p, POINTER(model_info)]),
    "aerie_model_get_sampling": (c_int, [c_void_p, POINTER(sampling)]),
    "aerie_model_tokenize": (c_int, [c_void_p, c_char_p, c_size_t, c_uint32, POINTER(c_void_p), POINTER(c_size_t)]),
    "aerie_model_detokenize": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(c_void_p), POINTER(c_size_t)]),
    "aerie_model_token_bytes": (c_int, [c_void_p, c_int32, POINTER(c_char_p), POINTER(c_size_t)]),
    "aerie_model_render": (c_int, [c_void_p, POINTER(chat_message), c_size_t, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_size_t)]),
    "aerie_session_create": (c_int, [c_void_p, POINTER(c_void_p)]),
    "aerie_session_free": (None, [c_void_p]),
    "aerie_session_message": (c_char_p, [c_void_p]),
    "aerie_session_cause": (c_int, [c_void_p]),
    "aerie_session_begin": (c_int, [c_void_p, POINTER(request)]),
    "aerie_session_step": (c_int, [c_void_p, POINTER(step)]),
    "aerie_session_run": (c_int, [c_void_p, step_callback, c_void_p]),
    "aerie_session_cancel": (None, [c_void_p]),
    "aerie_session_answer": (c_int, [c_void_p, POINTER(answer)]),
    "aerie_session_token": (c_int, [c_void_p, c_size_t, POINTER(token)]),
    "aerie_session_cycle": (c_int, [c_void_p, POINTER(cycle)]),
    "aerie_session_statistics": (c_int, [c_void_p, POINTER(statistics)]),
    "aerie_session_ids": (c_int, [c_void_p, POINTER(POINTER(c_int32)), POINTER(c_size_t), POINTER(c_size_t)]),
    "aerie_session_rewind": (c_int, [c_void_p, c_size_t]),
    "aerie_session_fork": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "aerie_session_save": (c_int, [c_void_p, c_char_p]),
    "aerie_session_load": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "aerie_device_init_at": (c_size_t, [POINTER(device), c_size_t]),
    "aerie_listed_model_init_at": (c_size_t, [POINTER(listed_model), c_size_t]),
    "aerie_model_options_init_at": (c_size_t, [POINTER(model_options), c_size_t]),
    "aerie_forecast_init_at": (c_size_t, [POINTER(forecast), c_size_t]),
    "aerie_model_info_init_at": (c_size_t, [POINTER(model_info), c_size_t]),
    "aerie_sampling_init_at": (c_size_t, [POINTER(sampling), c_size_t]),
    "aerie_request_init_at": (c_size_t, [POINTER(request), c_size_t]),
    "aerie_step_init_at": (c_size_t, [POINTER(step), c_size_t]),
    "aerie_answer_init_at": (c_size_t, [POINTER(answer), c_size_t]),
    "aerie_token_init_at": (c_size_t, [POINTER(token), c_size_t]),
    "aerie_cycle_init_at": (c_size_t, [POINTER(cycle), c_size_t]),
    "aerie_statistics_init_at": (c_size_t, [POINTER(statistics), c_size_t]),
}


def declare(library):
    """Tells ctypes what the functions of the library take and give."""
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
    return library
