"""Loads the C library, turns its failures into exceptions, and guards its handles."""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, List, Optional, Type

from . import _native
from ._native import Cause, Status


class Error(Exception):
    """A failure. `cause` says which, for programs that decide by it; each common cause has a class of its own."""

    cause: Cause = Cause.OTHER

    def __init__(self, message: str, cause: Optional[Cause] = None):
        super().__init__(message)
        if cause is not None:
            self.cause = cause


class UsageError(Error, ValueError):
    """The request is impossible."""
    cause = Cause.ARGUMENT


class ClosedError(UsageError):
    """The model or session is closed, or belongs to the process that this one was forked from."""


class BusyError(UsageError):
    """The session is within another call; only cancel() may be called meanwhile."""


class TooLongError(UsageError):
    """The prompt has no room in the context."""
    cause = Cause.TOO_LONG


class SessionsError(Error):
    """The model has as many sessions as it was opened for."""
    cause = Cause.SESSIONS


class NotFoundError(Error):
    """There is no such file, folder or model."""
    cause = Cause.NOT_FOUND


class FileError(Error):
    """A file cannot be read or written."""
    cause = Cause.FILE


class DamagedError(Error):
    """A file does not hold what it should."""
    cause = Cause.DAMAGED


class UnsupportedError(Error):
    """aerie cannot run what the file holds."""
    cause = Cause.UNSUPPORTED


class OtherModelError(Error):
    """A saved session belongs to another model."""
    cause = Cause.OTHER_MODEL


class NoDeviceError(Error):
    """There is no such device, or it cannot be used."""
    cause = Cause.NO_DEVICE


class DeviceLostError(Error):
    """The device failed while it worked."""
    cause = Cause.DEVICE_LOST


class DeviceMemoryError(Error):
    """The device has too little memory."""
    cause = Cause.DEVICE_MEMORY


class HostMemoryError(Error, MemoryError):
    """The host has too little memory."""
    cause = Cause.HOST_MEMORY


class CancelledError(Error):
    """A callback ended the call."""
    cause = Cause.CANCELLED


_CLASSES: dict[int, Type[Error]] = {
    one.cause: one for one in (UsageError, TooLongError, SessionsError, NotFoundError, FileError, DamagedError,
                               UnsupportedError, OtherModelError, NoDeviceError, DeviceLostError, DeviceMemoryError,
                               HostMemoryError, CancelledError)}


def _load() -> Any:
    given = os.environ.get("AERIE_LIBRARY")
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    path = given or os.path.join(folder, "libaerie.so.0")
    if not given and os.path.exists(path):
        # libaerie finds these by their names once they are loaded.
        for name in sorted(os.listdir(folder)):
            if ".so" in name and not name.startswith("libaerie."):
                ctypes.CDLL(os.path.join(folder, name))
    elif not given:
        path = "libaerie.so.0"  # installed on the system
    try:
        library = _native.declare(ctypes.CDLL(path))
    except (OSError, AttributeError) as error:
        raise ImportError(f"libaerie {_native.VERSION_NUMBER // 10000}.{_native.VERSION_NUMBER // 100 % 100} or newer cannot be loaded: {error}") from error
    return library


lib = _load()


def fail(status: int, message: Optional[bytes], cause: int) -> Error:
    """The exception for a failed call."""
    text = (message or b"").decode("utf-8", "replace") or Status(status).name.lower().replace("_", " ")
    if status == Status.USAGE and cause not in _CLASSES:
        cause = Cause.ARGUMENT
    known = cause in Cause._value2member_map_
    return _CLASSES.get(cause, Error)(text, Cause(cause) if known else Cause.OTHER)


class Handle:
    """A C handle that is freed when it is closed and no thread is within a call with it.

    `with handle as address` brackets each call. An exclusive handle refuses a second call meanwhile.
    """

    def __init__(self, address: int, kind: str, free: Callable[[Any], None], exclusive: bool = False):
        self._address: Optional[int] = address
        self._kind, self._free, self._exclusive = kind, free, exclusive
        self._lock = threading.RLock()  # a signal handler may cancel or close
        self._users = 0
        self._closed = False
        self._process = os.getpid()
        self.kept: List[Any] = []  # callbacks that the library may call until the handle is freed

    def __enter__(self) -> int:
        with self._lock:
            address = self._checked()
            if self._exclusive and self._users:
                raise BusyError(f"the {self._kind} is within another call, perhaps of another thread")
            self._users += 1
            return address

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._users -= 1
            self._free_if_unused()

    def _checked(self) -> int:
        if self._closed or self._address is None:
            raise ClosedError(f"the {self._kind} is closed")
        if self._process != os.getpid():
            raise ClosedError(f"the {self._kind} belongs to the process that this one was forked from")
        return self._address

    def _free_if_unused(self) -> None:
        if self._closed and not self._users and self._address is not None:
            # The device's threads are not in a forked process, so nothing is freed there.
            if self._process == os.getpid():
                self._free(self._address)
            self._address = None
            self.kept.clear()

    def beside(self, call: Callable[[Any], None]) -> None:
        """Calls a function that may run beside others; does nothing once the handle is closed."""
        with self._lock:
            if not self._closed and self._address is not None and self._process == os.getpid():
                call(self._address)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._free_if_unused()

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            self.close()


class Calls:
    """Callbacks of Python for one call of the library, which end it by an exception or by False."""

    def __init__(self) -> None:
        self.raised: Optional[BaseException] = None

    def wrap(self, kind: Any, function: Callable[..., Any]) -> Any:
        def call(_user: Any, *given: Any) -> int:
            if self.raised is not None:
                return 1
            try:
                return 1 if function(*given) is False else 0
            except BaseException as error:  # also the KeyboardInterrupt that arrives meanwhile
                self.raised = error
                return 1
        return kind(call)

    def rethrow(self) -> None:
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised


def encoded(text: Any, what: str) -> bytes:
    """A text for a C string."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str):
        raise UsageError(f"{what}: expected a str, not {type(text).__name__}")
    try:
        given = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} is no text in UTF-8") from error
    if b"\0" in given:
        raise UsageError(f"{what} contains NUL")
    return given


def number(value: Any, what: str, low: int = -(1 << 31), high: int = (1 << 31) - 1) -> int:
    """A whole number in its range: ctypes would cut it."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError(f"{what}: expected a whole number, not {value!r}")
    found = value.__index__()
    if not low <= found <= high:
        raise UsageError(f"{what}: expected a number from {low} to {high}, not {found}")
    return found
