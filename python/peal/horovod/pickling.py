"""How objects and functions become bytes: by cloudpickle if it is installed, else by pickle. cloudpickle
sends the functions and classes of the main module by value."""

from __future__ import annotations

import pickle
from typing import Any

try:
    import cloudpickle as _pickler  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError:
    _pickler = pickle

BY_VALUE: bool = _pickler is not pickle


def dumps(value: Any) -> bytes:
    data: bytes = _pickler.dumps(value)
    return data


def loads(data: Any) -> Any:
    return pickle.loads(data)
