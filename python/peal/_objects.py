"""Collectives over Python objects: methods of `peal.ProcessGroup`.

Objects are sent as JSON: a tuple arrives as a list, on the sending rank too, and the keys of a dict
are strings. With ``pickle=True`` objects are pickled. Use this only between ranks that trust each
other, because a sender can then run code on the receiver.

Ranks exchange sizes first. A rank that cannot encode its object sends an error instead of its size.
Then all ranks raise, and no rank waits for a missing object.
"""

from __future__ import annotations

import json
import pickle as pickling
from array import array
from typing import Any, Sequence, TypeVar

from peal._core import ProcessGroup
from peal._errors import Error, words_of

Sent = TypeVar("Sent")

_REFUSED = -1  # in the place of a size


def _check_keys(value: Any) -> None:
    """Rejects keys that are not strings, because json would silently convert them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a dict's key is {key!r}, but JSON allows only strings")
            _check_keys(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check_keys(inner)


def _encode(value: Any, pickle: bool) -> bytes | Error:
    """The encoded value, or the error, which is raised after the other ranks know of it."""
    try:
        if pickle:
            return pickling.dumps(value)
        _check_keys(value)
        return json.dumps(value).encode()
    except Exception as error:
        hint = "" if pickle else (
            ": objects are sent as JSON; pass pickle=True for other objects, if the ranks trust "
            "each other")
        return Error(words_of(error) + hint, "usage")


def _encode_each(values: Sequence[Any] | None, count: int, pickle: bool) -> list[bytes] | Error:
    try:
        every = [] if values is None else list(values)
    except Exception as error:
        return Error(f"scatter_object: the root's values: {words_of(error)}", "usage")
    if len(every) != count:
        return Error(f"scatter_object: the root must pass one value for each of {count} ranks",
                     "usage")
    parts = []
    for value in every:
        part = _encode(value, pickle)
        if isinstance(part, Error):
            return part
        parts.append(part)
    return parts


def _decode(data: bytes | bytearray, pickle: bool) -> Any:
    return pickling.loads(data) if pickle else json.loads(data)


def _size(part: bytes | Error) -> int:
    return _REFUSED if isinstance(part, Error) else len(part)


def _all_sizes(group: ProcessGroup, own: int, timeout: float | None) -> array[int]:
    sizes = array("q", bytes(8 * group.size))
    group.all_gather(array("q", [own]), sizes, timeout=timeout)
    return sizes


def _unless_refused(own: Sent | Error, sizes: Sequence[int], ranks: Sequence[int]) -> Sent:
    """This rank's data, or an error if one of the `ranks` has an error instead of a size."""
    if isinstance(own, Error):
        raise own
    for size, rank in zip(sizes, ranks):
        if size == _REFUSED:
            raise Error(f"rank {rank} cannot encode its object: see the error of that rank", "usage")
    return own


def _parts(data: bytearray, sizes: Sequence[int]) -> list[bytearray]:
    parts, begin = [], 0
    for size in sizes:
        parts.append(data[begin:begin + size])
        begin += size
    return parts


def broadcast_object(group: ProcessGroup, value: Any, root: int, *, pickle: bool = False,
                     timeout: float | None = None) -> Any:
    """The root's `value`, the same on every rank. If a tuple arrives as a list, the root gets a list
    too. The values of other ranks are ignored.

    Order: a collective.
    Errors: usage on every rank (the root's value cannot be encoded as JSON or pickled); those of
      broadcast.
    Cost: two broadcasts.
    """
    is_root = group.rank == root
    own = _encode(value, pickle) if is_root else b""
    size = array("q", [_size(own)])
    group.broadcast(size, root, timeout=timeout)
    own = _unless_refused(own, size, [root])
    data = bytearray(own) if is_root else bytearray(size[0])
    group.broadcast(data, root, timeout=timeout)
    return _decode(data, pickle)


def all_gather_object(group: ProcessGroup, value: Any, *, pickle: bool = False,
                      timeout: float | None = None) -> list[Any]:
    """A list of every rank's `value`, by rank, on every rank.

    Order: a collective.
    Errors: usage on every rank (a rank's value cannot be encoded as JSON or pickled; the text names
      the rank); those of all_gather.
    Cost: two all_gathers.
    """
    own = _encode(value, pickle)
    sizes = _all_sizes(group, _size(own), timeout)
    own = _unless_refused(own, sizes, range(group.size))
    data = bytearray(sum(sizes))
    group.all_gather(own, data, counts=list(sizes), timeout=timeout)
    return [_decode(part, pickle) for part in _parts(data, sizes)]


def gather_object(group: ProcessGroup, value: Any, root: int, *, pickle: bool = False,
                  timeout: float | None = None) -> list[Any] | None:
    """A list of every rank's `value`, by rank, on the root; None on other ranks.

    Order: a collective.
    Errors: usage on every rank (a rank's value cannot be encoded as JSON or pickled; the text names
      the rank); those of gather.
    Cost: an all_gather of 8 bytes and a gather.
    """
    own = _encode(value, pickle)
    sizes = _all_sizes(group, _size(own), timeout)
    own = _unless_refused(own, sizes, range(group.size))
    data = bytearray(sum(sizes) if group.rank == root else 0)
    group.gather(own, data if group.rank == root else None, root, counts=list(sizes),
                 timeout=timeout)
    if group.rank != root:
        return None
    return [_decode(part, pickle) for part in _parts(data, sizes)]


def scatter_object(group: ProcessGroup, values: Sequence[Any] | None, root: int, *,
                   pickle: bool = False, timeout: float | None = None) -> Any:
    """The value for this rank from the root's `values`, which hold one value for each rank.

    Order: a collective.
    Errors: usage on every rank (the number of the root's values is not the number of ranks, or a
      value cannot be encoded as JSON or pickled); those of scatter.
    Cost: a broadcast of 8 bytes for each rank and a scatter.
    """
    is_root = group.rank == root
    parts = _encode_each(values, group.size, pickle) if is_root else [b""] * group.size
    sizes = array("q", [_REFUSED] * group.size if isinstance(parts, Error) else map(len, parts))
    group.broadcast(sizes, root, timeout=timeout)
    parts = _unless_refused(parts, sizes, [root])
    own = bytearray(sizes[group.rank])
    group.scatter(b"".join(parts) if is_root else None, own, root, counts=list(sizes),
                  timeout=timeout)
    return _decode(own, pickle)


def add_object_collectives(group_class: type[ProcessGroup]) -> None:
    for method in (broadcast_object, all_gather_object, gather_object, scatter_object):
        setattr(group_class, method.__name__, method)
