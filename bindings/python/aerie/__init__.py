"""aerie: LLaMA-family models with speculative decoding, in this process.

    import aerie
    with aerie.Model("aerie-tiny") as model, model.session() as talk:
        for piece in talk.stream("Once upon a time", max_tokens=64):
            print(piece, end="", flush=True)
"""
from ._library import (BusyError, CancelledError, ClosedError, DamagedError, DeviceLostError, DeviceMemoryError, Error,
                       FileError, HostMemoryError, NoDeviceError, NotFoundError, OtherModelError, SessionsError,
                       TooLongError, UnsupportedError, UsageError)
from ._model import (Device, Forecast, ListedModel, Model, ModelInfo, Sampling, devices, forecast, models, set_log,
                     version)
from ._native import Cause, DeviceKind, Finish, LogLevel, Origin, Stage
from ._session import Answer, Cycle, Piece, Session, Statistics, Token

__all__ = ["Answer", "BusyError", "CancelledError", "Cause", "ClosedError", "Cycle", "DamagedError", "Device", "DeviceKind",
           "DeviceLostError", "DeviceMemoryError", "Error", "FileError", "Finish", "Forecast", "HostMemoryError",
           "ListedModel", "LogLevel", "Model", "ModelInfo", "NoDeviceError", "NotFoundError", "Origin", "OtherModelError",
           "Piece", "Sampling", "Session", "SessionsError", "Stage", "Statistics", "Token", "TooLongError",
           "UnsupportedError", "UsageError", "devices", "forecast", "models", "set_log", "version"]
