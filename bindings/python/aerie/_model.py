"""Models, and what is on this machine: devices, models at hand."""
from __future__ import annotations

import ctypes
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar

from . import _native
from ._library import Calls, Handle, UsageError, encoded, fail, lib, number
from ._native import DeviceKind, LogLevel, Stage

Progress = Callable[[Stage, int, int], Optional[bool]]
Message = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Device:
    """A device that may run models; `problem` says why it cannot."""
    name: str
    description: str
    details: str
    problem: str
    memory_bytes: int
    kind: DeviceKind
    threads: int
    is_best: bool


@dataclass(frozen=True)
class ListedModel:
    """A model on this machine. Its name opens it."""
    name: str
    path: str
    program: str
    heads: Tuple[str, ...]
    weight_bytes: int


@dataclass(frozen=True)
class Forecast:
    """Memory in bytes that a model will take."""
    target_weights: int
    draft_weights: int
    kv_cache: int
    scratch: int
    program: int
    total: int
    device_memory: int
    fits: bool
    context: int
    largest_context: int


@dataclass(frozen=True)
class ModelInfo:
    """A loaded model."""
    path: str
    head: str
    device: str
    device_description: str
    draft: str
    eos_ids: Tuple[int, ...]
    context: int
    trained_context: int
    vocab: int
    tokens: int
    bos: int
    sessions: int
    can_draft: bool
    has_chat_template: bool
    has_system_role: bool
    parameters: int
    weight_bytes: int
    architecture: str
    weights: str
    chat_template: str


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen. Zeros are off; temperature 0 is the likeliest token."""
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 0.0
    min_p: float = 0.0
    repetition: float = 0.0
    frequency: float = 0.0
    presence: float = 0.0


def init(kind: Type[T]) -> T:
    """A zeroed struct that knows its size."""
    value = kind()
    value.size = ctypes.sizeof(kind)  # type: ignore[attr-defined]
    return value


def text_of(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


def plain(kind: Type[T], struct: Any, /, **given: Any) -> T:
    """A dataclass from the members of a struct that have its names."""
    values: Dict[str, Any] = {}
    for name, field in kind.__dataclass_fields__.items():  # type: ignore[attr-defined]
        if name in given:
            values[name] = given[name]
            continue
        value = getattr(struct, name)
        if field.type == "str":
            value = text_of(value)
        elif field.type == "bool":
            value = bool(value)
        values[name] = value
    return kind(**values)


class Context:
    """The library as this process sees it; there is one."""

    def __init__(self) -> None:
        address = ctypes.c_void_p()
        status = lib.aerie_context_create(ctypes.byref(address))
        if status:
            raise fail(status, None, 0)
        self.handle = Handle(address.value or 0, "context", lib.aerie_context_free)

    def check(self, address: int, status: int) -> None:
        if status:
            raise fail(status, lib.aerie_context_message(address), lib.aerie_context_cause(address))


_context: Optional[Context] = None
_making = threading.Lock()


def context() -> Context:
    global _context
    with _making:
        if _context is None:
            _context = Context()
        return _context


def version() -> str:
    """The version of the library."""
    return text_of(lib.aerie_version())


def devices() -> List[Device]:
    """The devices of this machine, usable or not."""
    own, count = context(), ctypes.c_size_t()
    with own.handle as address:
        own.check(address, lib.aerie_context_devices(address, ctypes.byref(count)))
        found = []
        for index in range(count.value):
            device = init(_native.device)
            own.check(address, lib.aerie_context_device(address, index, ctypes.byref(device)))
            found.append(plain(Device, device, kind=DeviceKind(device.kind)))
        return found


_searching = threading.Lock()


def models(folder: Optional[str] = None) -> List[ListedModel]:
    """The models at hand: in `folder`, bundled, and those of other programs."""
    own, count = context(), ctypes.c_size_t()
    given = None if folder is None else encoded(folder, "folder")
    with _searching, own.handle as address:
        own.check(address, lib.aerie_context_models(address, given, ctypes.byref(count)))
        found = []
        for index in range(count.value):
            model = init(_native.listed_model)
            own.check(address, lib.aerie_context_model(address, index, ctypes.byref(model)))
            found.append(plain(ListedModel, model, heads=tuple(text_of(model.heads).splitlines())))
        return found


_log: Any = None


def set_log(callback: Optional[Callable[[LogLevel, str], Any]]) -> None:
    """Gives the library's log lines to a function, from any thread; None: no log."""
    global _log
    own = context()

    def call(_user: Any, level: int, line: bytes) -> None:
        try:
            callback(LogLevel(level), text_of(line))  # type: ignore[misc]
        except Exception:  # nobody is there to hear of it
            pass

    made = _native.log_callback(call) if callback else _native.log_callback()
    with own.handle as address:
        own.check(address, lib.aerie_context_set_log(address, made, None))
    _log = made  # the former one is not called any more


def options_of(model: Any, given: Mapping[str, Any], calls: Calls) -> Tuple[Any, List[Any]]:
    """The options of C, and what must live as long."""
    options = init(_native.model_options)
    options.model = encoded(model, "model")
    more = dict(given)
    for name in ("head", "draft", "device", "weights", "draft_weights", "kv", "models", "cache"):
        value = more.pop(name, None)
        if value is not None:
            setattr(options, name, encoded(value, name))
    for name in ("context", "sessions", "threads", "chain_length"):
        setattr(options, name, number(more.pop(name, 0), name))
    tree = more.pop("tree", None)
    if tree is not None:
        try:
            nodes, levels, top_k = tree
        except (TypeError, ValueError):
            raise UsageError("tree: expected (nodes, levels, top_k)") from None
        options.tree_nodes, options.tree_levels = number(nodes, "tree"), number(levels, "tree")
        options.tree_top_k = number(top_k, "tree")
    progress = more.pop("progress", None)
    if more:
        raise UsageError(f"no option is called {', '.join(sorted(more))}")

    # Without a progress of yours it is called all the same, so that Ctrl-C is heard while a model is loaded.
    def report(stage: int, done: int, total: int) -> Optional[bool]:
        return progress(Stage(stage), done, total) if progress else None

    options.load_progress = calls.wrap(_native.load_callback, report)
    return options, [options.load_progress]


def forecast(model: str, **options: Any) -> Forecast:
    """The memory that a model with these options of Model will take; nothing is loaded."""
    own, calls, found = context(), Calls(), init(_native.forecast)
    given, _kept = options_of(model, options, calls)
    with own.handle as address:
        status = lib.aerie_model_forecast(address, ctypes.byref(given), ctypes.byref(found))
        calls.rethrow()
        own.check(address, status)
    return plain(Forecast, found)


class Model:
    """A loaded model. May be used from any thread, by several at once.

    `model` is a folder, a .gguf file, or a name that models() lists. Options: head, draft, device, weights,
    draft_weights, kv, models, cache (names and folders), context, sessions, threads, chain_length, tree=(nodes, levels,
    top_k), and progress(stage, done, total), which ends the loading by returning False. See aerie.h for what they mean.
    """

    def __init__(self, model: str, *, head: Optional[str] = None, draft: Optional[str] = None,
                 device: Optional[str] = None, weights: Optional[str] = None, draft_weights: Optional[str] = None,
                 kv: Optional[str] = None, models: Optional[str] = None, cache: Optional[str] = None, context: int = 0,
                 sessions: int = 0, threads: int = 0, chain_length: int = 0,
                 tree: Optional[Tuple[int, int, int]] = None, progress: Optional[Progress] = None):
        given = {name: value for name, value in locals().items() if name not in ("self", "model", "__class__")}
        own, calls, address = globals()["context"](), Calls(), ctypes.c_void_p()
        options, _kept = options_of(model, given, calls)
        with own.handle as library:
            status = lib.aerie_model_open(library, ctypes.byref(options), ctypes.byref(address))
            if not status:
                self._handle = Handle(address.value or 0, "model", lib.aerie_model_free)
            calls.rethrow()
            own.check(library, status)
        self._sessions: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._lock = threading.Lock()
        self.info: ModelInfo = self._read_info()
        self.sampling: Sampling = self._read_sampling()

    def _check(self, address: int, status: int) -> None:
        if status:
            raise fail(status, lib.aerie_model_message(address), lib.aerie_model_cause(address))

    def _read_info(self) -> ModelInfo:
        info = init(_native.model_info)
        with self._handle as address:
            self._check(address, lib.aerie_model_get_info(address, ctypes.byref(info)))
            return plain(ModelInfo, info, eos_ids=tuple(info.eos_ids[:info.eos_count]))

    def _read_sampling(self) -> Sampling:
        sampling = init(_native.sampling)
        with self._handle as address:
            self._check(address, lib.aerie_model_get_sampling(address, ctypes.byref(sampling)))
            return plain(Sampling, sampling)

    def tokenize(self, text: str, *, start: bool = False, special: bool = False) -> List[int]:
        """The ids of a text: with BOS in front if it starts one, with special tokens recognised."""
        given = encoded_text(text, "text")
        ids, count = ctypes.c_void_p(), ctypes.c_size_t()
        flags = (_native.TEXT_START if start else 0) | (_native.TEXT_SPECIAL if special else 0)
        with self._handle as address:
            self._check(address, lib.aerie_model_tokenize(address, given, len(given), flags, ctypes.byref(ids),
                                                          ctypes.byref(count)))
        return take_ids(ids, count.value)

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of some ids."""
        given = ids_of(ids)
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        with self._handle as address:
            self._check(address, lib.aerie_model_detokenize(address, given, len(ids), ctypes.byref(text),
                                                            ctypes.byref(size)))
        return take_text(text, size.value)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token, which may be part of a character."""
        found, count = ctypes.c_char_p(), ctypes.c_size_t()
        with self._handle as address:
            self._check(address, lib.aerie_model_token_bytes(address, number(token, "token"), ctypes.byref(found),
                                                             ctypes.byref(count)))
            at = ctypes.cast(found, ctypes.c_void_p)
            return ctypes.string_at(at, count.value) if at else b""

    def render(self, messages: Sequence[Message]) -> str:
        """A conversation as the model's chat template writes it, up to the start of the answer."""
        listed = (_native.chat_message * len(messages))()
        for into, message in zip(listed, messages):
            into.role, into.content = encoded(message["role"], "role"), encoded(message["content"], "content")
        text = ctypes.c_void_p()
        with self._handle as address:
            self._check(address, lib.aerie_model_render(address, listed, len(messages), ctypes.byref(text), None, None))
        return take_text(text)

    def session(self) -> "Session":
        """A new conversation. There is room for as many as `sessions` said; 1 by default."""
        made = ctypes.c_void_p()
        with self._handle as address:
            self._check(address, lib.aerie_session_create(address, ctypes.byref(made)))
            return self._keep(made)

    def load(self, path: str) -> "Session":
        """A conversation that Session.save saved."""
        made = ctypes.c_void_p()
        with self._handle as address:
            self._check(address, lib.aerie_session_load(address, encoded(path, "path"), ctypes.byref(made)))
            return self._keep(made)

    def _keep(self, made: ctypes.c_void_p) -> "Session":
        session = Session(self, Handle(made.value or 0, "session", lib.aerie_session_free, exclusive=True))
        with self._lock:
            self._sessions.add(session)
        if self._handle.closed:  # by another thread, which may not have seen this session
            session.close()
        return session

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Frees the model and closes its sessions; what another thread runs ends first, cancelled."""
        self._handle.close()
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<aerie.Model {self.info.path!r} on {self.info.device}{', closed' if self.closed else ''}>"


def encoded_text(text: str, what: str) -> bytes:
    """A text that may hold NUL, with its length."""
    if not isinstance(text, str):
        raise UsageError(f"{what}: expected a str, not {type(text).__name__}")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} is no text in UTF-8") from error


def ids_of(ids: Sequence[int]) -> Any:
    return (ctypes.c_int32 * max(1, len(ids)))(*[number(one, "an id") for one in ids])


def take_text(text: ctypes.c_void_p, size: int = -1) -> str:
    try:
        return ctypes.string_at(text, size).decode("utf-8", "replace")
    finally:
        lib.aerie_free(text)


def take_ids(ids: ctypes.c_void_p, count: int) -> List[int]:
    try:
        return list(ctypes.cast(ids, ctypes.POINTER(ctypes.c_int32))[:count])
    finally:
        lib.aerie_free(ids)


from ._session import Session  # noqa: E402  (models make sessions, and sessions belong to models)
