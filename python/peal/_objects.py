"""Collectives over Python's objects: methods of `peal.ProcessGroup`.

Objects travel as JSON. With ``pickle=True`` they are pickled: whoever can send to this rank can
then run code in it, so that is for ranks that trust each other.
"""

from __future__ import annotations

import json
import pickle as pickling
from array import array
from typing import Any, Sequence

from peal._core import ProcessGroup
from peal._errors import Error


def _encode(value: Any, pickle: bool) -> bytes:
    if pickle:
        return pickling.dumps(value)
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError) as error:
        raise Error(f"{error}: objects travel as JSON; pickle=True takes any, from ranks that are "
                    "trusted", "usage") from None


def _decode(data: bytes | bytearray, pickle: bool) -> Any:
    return pickling.loads(data) if pickle else json.loads(data)


def _sizes(group: ProcessGroup, own: int, timeout: float | None) -> array[int]:
    sizes = array("q", bytes(8 * group.size))
    group.all_gather(array("q", [own]), sizes, timeout=timeout)
    return sizes


def _parts(data: bytearray, sizes: Sequence[int]) -> list[bytearray]:
    parts, begin = [], 0
    for size in sizes:
        parts.append(data[begin:begin + size])
        begin += size
    return parts


def broadcast_object(group: ProcessGroup, value: Any, root: int, *, pickle: bool = False,
                     timeout: float | None = None) -> Any:
    """The root's `value`, on every rank. What the others give is not looked at.

    Order: a collective.
    Errors: usage (without `pickle`: what JSON cannot write); as broadcast.
    Cost: two broadcasts.
    """
    data = bytearray(_encode(value, pickle)) if group.rank == root else bytearray()
    size = array("q", [len(data)])
    group.broadcast(size, root, timeout=timeout)
    if group.rank != root:
        data = bytearray(size[0])
    group.broadcast(data, root, timeout=timeout)
    return value if group.rank == root else _decode(data, pickle)


def all_gather_object(group: ProcessGroup, value: Any, *, pickle: bool = False,
                      timeout: float | None = None) -> list[Any]:
    """A list of every rank's `value`, by rank, on every rank.

    Order: a collective.
    Errors: usage (without `pickle`: what JSON cannot write); as all_gather.
    Cost: two all_gathers.
    """
    own = _encode(value, pickle)
    sizes = _sizes(group, len(own), timeout)
    data = bytearray(sum(sizes))
    group.all_gather(own, data, counts=list(sizes), timeout=timeout)
    return [_decode(part, pickle) for part in _parts(data, sizes)]


def gather_object(group: ProcessGroup, value: Any, root: int, *, pickle: bool = False,
                  timeout: float | None = None) -> list[Any] | None:
    """A list of every rank's `value`, by rank, on the root; None elsewhere.

    Order: a collective.
    Errors: usage (without `pickle`: what JSON cannot write); as gather.
    Cost: an all_gather of 8 bytes and a gather.
    """
    own = _encode(value, pickle)
    sizes = _sizes(group, len(own), timeout)
    data = bytearray(sum(sizes) if group.rank == root else 0)
    group.gather(own, data if group.rank == root else None, root, counts=list(sizes),
                 timeout=timeout)
    if group.rank != root:
        return None
    return [_decode(part, pickle) for part in _parts(data, sizes)]


def scatter_object(group: ProcessGroup, values: Sequence[Any] | None, root: int, *,
                   pickle: bool = False, timeout: float | None = None) -> Any:
    """This rank's of the root's `values`, of which it has one for each rank.

    Order: a collective.
    Errors: usage (not as many values as ranks; without `pickle`: what JSON cannot write), which the
      root alone raises; as scatter.
    Cost: a broadcast of 8 bytes for each rank and a scatter.
    """
    parts: list[bytes] = []
    if group.rank == root:
        if values is None or len(values) != group.size:
            raise Error(f"scatter_object: the root needs one value for each of {group.size} ranks",
                        "usage")
        parts = [_encode(value, pickle) for value in values]
    sizes = array("q", [len(part) for part in parts] or bytes(8 * group.size))
    group.broadcast(sizes, root, timeout=timeout)
    own = bytearray(sizes[group.rank])
    group.scatter(b"".join(parts) if group.rank == root else None, own, root, counts=list(sizes),
                  timeout=timeout)
    return _decode(own, pickle)


def add_object_collectives(group_class: type[ProcessGroup]) -> None:
    for method in (broadcast_object, all_gather_object, gather_object, scatter_object):
        setattr(group_class, method.__name__, method)
