"""Sessions: conversations with a model, and their answers."""
from __future__ import annotations

import asyncio
import ctypes
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._library import Calls, Handle, UsageError, encoded, fail, lib, number
from ._native import Cause, Finish, Origin

if TYPE_CHECKING:
    from ._model import Model, Sampling

_LEFT = "another answer of this session was begun, or it was rewound"
Prompt = Union[str, Sequence[int], Sequence[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Token:
    """A token, where it came from, and how likely it was."""
    id: int
    bytes: bytes
    origin: Origin
    depth: int
    logprob: Optional[float]
    alternatives: Tuple[Tuple[int, float], ...]

    @property
    def drafted(self) -> bool:
        return self.origin == Origin.FROM_DRAFT


@dataclass(frozen=True)
class Piece:
    """The addition of one step: whole characters, and the tokens behind them."""
    text: str
    tokens: Tuple[Token, ...]

    @property
    def ids(self) -> Tuple[int, ...]:
        return tuple(token.id for token in self.tokens)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Statistics:
    """How an answer was made: tau is tokens per cycle."""
    cycles: int
    cycle_tokens: int
    plain_cycles: int
    accepted_by_depth: Tuple[int, ...]
    cycle_nodes: int
    tau: float
    tokens_per_second: float
    prefill_seconds: float
    decode_seconds: float
    draft_seconds: float
    verify_seconds: float
    sample_seconds: float
    host_seconds: float


@dataclass(frozen=True)
class Cycle:
    """The newest cycle: a tree of drafted tokens, parents first; the root is the token before."""
    tokens: Tuple[int, ...]
    parents: Tuple[int, ...]
    values: Optional[Tuple[float, ...]]
    choices: Optional[Tuple[int, ...]]
    path: Tuple[int, ...]
    next: int


class Answer:
    """An answer in the making: iterating over it runs it, piece by piece.

    A loop that was left early may be gone on with; an answer that has ended cannot be iterated again, but keeps its
    `text` and `tokens`. Another answer of the same session ends it.
    """

    def __init__(self, session: "Session", calls: Calls, on_end: Optional[Callable[["Answer"], None]]):
        self._session, self._calls, self._on_end = session, calls, on_end
        self._done = self._left = False
        self._parts: List[str] = []
        self.tokens: List[Token] = []
        self.seed = self.prompt_tokens = self.reused_tokens = 0
        self.finish = Finish.NONE
        self.statistics: Optional[Statistics] = None

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    @property
    def done(self) -> bool:
        return self._done

    def cancel(self) -> None:
        """Ends the answer with its next step at the latest; from any thread."""
        self._session.cancel(self)

    def read(self) -> str:
        """Runs the rest of the answer. The whole text."""
        for _ in () if self._done else self:
            pass
        return self.text

    def __iter__(self) -> Iterator[Piece]:
        if self._done:
            raise UsageError("the answer has been read; its text and tokens are kept")
        return self

    def __next__(self) -> Piece:
        if self._left:
            raise UsageError(_LEFT)
        while not self._done:
            piece = self._session._step(self)
            if piece.text or piece.tokens:
                return piece
        raise StopIteration

    def __aiter__(self) -> "Answer":
        iter(self)
        return self

    async def __anext__(self) -> Piece:
        piece = await asyncio.get_running_loop().run_in_executor(None, next, self, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def _end(self, left: bool = False) -> None:
        if not self._done:
            self._done, self._left = True, left
            if self.finish == Finish.NONE:
                self.finish = Finish.CANCELLED
            if self._on_end:
                self._on_end(self)


class Session:
    """A conversation: its text, and all that was computed for it. One thread at a time; cancel() from any.

    Made by Model.session() and Model.load().
    """

    def __init__(self, model: "Model", handle: Handle):
        self._model, self._handle = model, handle
        self._answer: Optional[Answer] = None
        self._choosing = threading.RLock()
        self.messages: List[Mapping[str, Any]] = []

    def _check(self, address: int, status: int) -> None:
        if status:
            raise fail(status, lib.aerie_session_message(address), lib.aerie_session_cause(address))

    def say(self, text: str, *, system: Optional[str] = None, **options: Any) -> Answer:
        """Sends a message and streams the answer. Both become part of `messages`, also if the answer is cancelled."""
        messages = list(self.messages)
        if self._answer and not self._answer.done and self._answer._on_end:
            messages.append({"role": "assistant", "content": self._answer.text})
        if system is not None:
            messages = [one for one in messages if one["role"] != "system"]
            messages.insert(0, {"role": "system", "content": system})
        messages.append({"role": "user", "content": text})

        def keep(answer: Answer) -> None:
            self.messages.append({"role": "assistant", "content": answer.text})

        answer = self._begin(messages, keep, options)
        self.messages = messages
        return answer

    def stream(self, prompt: Prompt, **options: Any) -> Answer:
        """Begins an answer to the whole text so far: a str, ids, a list of messages, or a conversation as a dict.

        The part that the session holds is not read again. Options: max_tokens, sampling (a Sampling; None: the model's
        own), seed, stops, logprobs, alternatives, drafts=False, ignore_eos, plain_text, progress(done, total), and
        edit_logits(ids, logits), which may change the logits of the token after these ids.
        """
        return self._begin(prompt, None, options)

    def _begin(self, prompt: Prompt, on_end: Optional[Callable[[Answer], None]], options: Mapping[str, Any]) -> Answer:
        calls = Calls()
        request, kept = request_of(prompt, options, calls)
        answer = Answer(self, calls, on_end)
        with self._handle as address:
            # The former answer's callbacks may be called until the new one has begun.
            status = lib.aerie_session_begin(address, ctypes.byref(request))
            self._check(address, status)
            self._handle.kept[:] = kept
            with self._choosing:
                former, self._answer = self._answer, answer
            if former is not None:
                former._end(left=True)
            self._note(address, answer)
        return answer

    def _step(self, answer: Answer) -> Piece:
        with self._handle as address:
            if self._answer is not answer:  # since another thread has begun one
                raise UsageError(_LEFT)
            step = _native.step()
            step.size = ctypes.sizeof(step)
            status = lib.aerie_session_step(address, ctypes.byref(step))
            self._note(address, answer)
            if status or answer._calls.raised is not None:
                answer._end()
                answer._calls.rethrow()
                self._check(address, status)
            text = ctypes.string_at(step.text, step.text_bytes).decode("utf-8", "replace")
            tokens = tuple(self._token(address, step.first_token + i) for i in range(step.token_count))
            answer._parts.append(text)
            answer.tokens.extend(tokens)
            if not step.more:
                answer._end()
            return Piece(text, tokens)

    def _token(self, address: int, index: int) -> Token:
        token = _native.token()
        token.size = ctypes.sizeof(token)
        self._check(address, lib.aerie_session_token(address, index, ctypes.byref(token)))
        listed = token.alternatives[:token.alternative_count] if token.alternative_count else ()
        return Token(token.id, ctypes.string_at(token.bytes, token.byte_count) if token.byte_count else b"",
                     Origin(token.origin), token.depth, None if token.logprob != token.logprob else token.logprob,
                     tuple((one.id, one.logprob) for one in listed))

    def _note(self, address: int, answer: Answer) -> None:
        found = _native.answer()
        found.size = ctypes.sizeof(found)
        self._check(address, lib.aerie_session_answer(address, ctypes.byref(found)))
        answer.seed, answer.prompt_tokens, answer.reused_tokens = found.seed, found.prompt_tokens, found.reused_tokens
        answer.finish = Finish(found.finish)
        stats = _native.statistics()
        stats.size = ctypes.sizeof(stats)
        self._check(address, lib.aerie_session_statistics(address, ctypes.byref(stats)))
        by_depth = tuple(stats.accepted_by_depth[:stats.depth_count]) if stats.depth_count else ()
        answer.statistics = Statistics(**{name: by_depth if name == "accepted_by_depth" else getattr(stats, name)
                                          for name in Statistics.__dataclass_fields__})

    def cycle(self) -> Cycle:
        """The tree of the newest step."""
        found = _native.cycle()
        found.size = ctypes.sizeof(found)
        with self._handle as address:
            self._check(address, lib.aerie_session_cycle(address, ctypes.byref(found)))
            count = found.node_count
            return Cycle(tuple(found.tokens[:count]), tuple(found.parents[:count]),
                         tuple(found.values[:count]) if found.values else None,
                         tuple(found.choices[:count]) if found.choices else None,
                         tuple(found.path[:found.path_count]), found.next)

    @property
    def ids(self) -> List[int]:
        """All ids of the session."""
        ids, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        with self._handle as address:
            self._check(address, lib.aerie_session_ids(address, ctypes.byref(ids), ctypes.byref(count), None))
            return list(ids[:count.value]) if count.value else []

    def cancel(self, answer: Optional[Answer] = None) -> None:
        """Ends the running answer with its next step at the latest; from any thread. Does nothing without one."""
        with self._choosing:
            if answer is None or self._answer is answer:
                self._handle.beside(lib.aerie_session_cancel)

    def rewind(self, length: int) -> None:
        """Cuts the session to its first ids; an unfinished answer ends."""
        with self._handle as address:
            self._check(address, lib.aerie_session_rewind(address, number(length, "length", 0, (1 << 63) - 1)))
            with self._choosing:
                former, self._answer = self._answer, None
            if former is not None:
                former._end(left=True)

    def fork(self, length: Optional[int] = None) -> "Session":
        """Another session with the first ids of this one, or all."""
        made = ctypes.c_void_p()
        count = (1 << 31) if length is None else number(length, "length", 0, (1 << 63) - 1)
        if length is None:
            count = len(self.ids)
        with self._handle as address:
            self._check(address, lib.aerie_session_fork(address, count, ctypes.byref(made)))
            return self._model._keep(made)

    def save(self, path: str) -> None:
        """Saves the session to a file, for Model.load."""
        with self._handle as address:
            self._check(address, lib.aerie_session_save(address, encoded(path, "path")))

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Frees the session; a call of another thread ends first, cancelled."""
        self.cancel()
        self._handle.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _sampling_of(given: Any) -> Any:
    sampling = _native.sampling()
    sampling.size = ctypes.sizeof(sampling)
    for name in ("temperature", "top_p", "min_p", "repetition", "frequency", "presence"):
        try:
            setattr(sampling, name, float(getattr(given, name)))
        except (AttributeError, TypeError, ValueError):
            raise UsageError(f"sampling: expected a Sampling with a number {name}, not {given!r}") from None
    sampling.top_k = number(given.top_k, "top_k")
    return sampling


def _set_prompt(request: Any, prompt: Any, kept: List[Any]) -> None:
    if isinstance(prompt, str):
        from ._model import encoded_text
        text = ctypes.create_string_buffer(encoded_text(prompt, "prompt"))
        kept.append(text)
        request.text, request.text_bytes = ctypes.addressof(text), len(text) - 1
    elif isinstance(prompt, Mapping) or (isinstance(prompt, Sequence) and prompt and isinstance(prompt[0], Mapping)):
        try:
            request.conversation = json.dumps(prompt, ensure_ascii=True).encode()
        except (TypeError, ValueError) as error:
            raise UsageError(f"prompt: {error}") from error
    elif isinstance(prompt, (bytes, bytearray)) or not hasattr(prompt, "__iter__"):
        raise UsageError(f"prompt: expected a str, ids, messages or a conversation, not {type(prompt).__name__}")
    else:
        from ._model import ids_of
        ids = list(prompt)
        request.ids, request.id_count = ids_of(ids), len(ids)


def request_of(prompt: Prompt, given: Mapping[str, Any], calls: Calls) -> Tuple[Any, List[Any]]:
    """The request of C, and what must live until the answer has ended."""
    request, kept, more = _native.request(), [], dict(given)  # type: Any, List[Any], dict
    request.size = ctypes.sizeof(request)
    _set_prompt(request, prompt, kept)
    sampling = more.pop("sampling", None)
    if sampling is not None:
        request.sampling = ctypes.pointer(_sampling_of(sampling))
    seed = more.pop("seed", None)
    if seed is not None:
        request.seed, request.has_seed = number(seed, "seed", 0, (1 << 64) - 1), 1
    request.max_tokens = number(more.pop("max_tokens", 0), "max_tokens")
    request.alternatives = number(more.pop("alternatives", 0), "alternatives")
    request.logprobs = bool(more.pop("logprobs", False))
    request.without_drafts = not more.pop("drafts", True)
    request.ignore_eos = bool(more.pop("ignore_eos", False))
    request.plain_text = bool(more.pop("plain_text", False))
    stops = more.pop("stops", ())
    stops = [stops] if isinstance(stops, str) else list(stops)
    request.stops = (ctypes.c_char_p * max(1, len(stops)))(*[encoded(stop, "a stop text") for stop in stops])
    request.stop_count = len(stops)
    progress, edit = more.pop("progress", None), more.pop("edit_logits", None)
    if more:
        raise UsageError(f"no option is called {', '.join(sorted(more))}")

    # Without a progress of yours it is called all the same, so that Ctrl-C is heard within a long prompt.
    def report(done: int, total: int) -> Optional[bool]:
        return progress(done, total) if progress else None

    request.prompt_progress = calls.wrap(_native.prompt_callback, report)
    kept.append(request.prompt_progress)
    if edit:
        def change(text: Any, count: int, logits: Any, vocab: int) -> None:
            at = ctypes.addressof(logits.contents)
            edit(text[:count], (ctypes.c_float * vocab).from_address(at))

        request.edit_logits = calls.wrap(_native.logits_callback, change)
        kept.append(request.edit_logits)
    return request, kept
