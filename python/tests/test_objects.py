"""Python objects between ranks, and objects that cannot be sent."""

from __future__ import annotations

import threading
import time
import unittest
from typing import Any, Callable

import peal
from programs import PATIENCE

RANKS = 3


class Sneaky:
    """Pickling it raises an exception that pickle itself never raises."""

    def __reduce__(self) -> Any:
        raise LookupError("not this one")


def broadcast(group: peal.ProcessGroup, value: Any, pickle: bool) -> Any:
    return group.broadcast_object(value, 1, pickle=pickle)


def all_gather(group: peal.ProcessGroup, value: Any, pickle: bool) -> Any:
    return group.all_gather_object(value, pickle=pickle)


def gather(group: peal.ProcessGroup, value: Any, pickle: bool) -> Any:
    return group.gather_object(value, 2, pickle=pickle)


def scatter(group: peal.ProcessGroup, value: Any, pickle: bool) -> Any:
    values = ["a", value, "c"] if group.rank == 1 else None
    return group.scatter_object(values, 1, pickle=pickle)


def scatter_too_few(group: peal.ProcessGroup, value: Any, pickle: bool) -> Any:
    return group.scatter_object(["a", "b"] if group.rank == 1 else None, 1, pickle=pickle)


def scatter_a_number(group: peal.ProcessGroup, value: Any, pickle: bool) -> Any:
    return group.scatter_object(3 if group.rank == 1 else None, 1, pickle=pickle)  # type: ignore


def keyed_by_numbers() -> Any:
    return {"losses": ({1: 0.5}, 2)}


Operation = Callable[[peal.ProcessGroup, Any, bool], Any]


def refused(operations: list[Operation], make: Callable[[], Any], pickle: bool) -> list[Any]:
    """Runs each operation with a value of `make` on rank 1 and with a number on other ranks. Returns
    the kind and text of the error, the duration, and the result of an operation after the error."""
    seen = []
    group = peal.init_process_group(timeout=3600)
    for operation in operations:
        begin = time.monotonic()
        try:
            got = operation(group, make() if group.rank == 1 else group.rank, pickle)
            error = peal.Error(f"no error, but {got}", "bug")
        except peal.Error as raised:
            error = raised
        seconds = time.monotonic() - begin
        seen.append([error.kind, str(error), seconds, group.all_gather_object(group.rank)])
    return seen


def broadcast_by_each() -> list[Any]:
    """A value of rank 1 that contains tuples, sent as JSON and pickled."""
    with peal.init_process_group() as group:
        value = {"shape": (2, (3, 4))} if group.rank == 1 else None
        return [group.broadcast_object(value, 1, pickle=pickle) for pickle in (False, True)]


def a_set() -> Any:
    return {1, 2}


class RefusalTest(unittest.TestCase):
    def check(self, operations: list[Operation], make: Callable[[], Any], pickle: bool,
              why: str) -> None:
        for rank, seen in enumerate(
                peal.spawn(refused, operations, make, pickle, ranks=RANKS)):
            for operation, (kind, text, seconds, after) in zip(operations, seen):
                with self.subTest(operation.__name__, rank=rank):
                    self.assertEqual(kind, "usage", text)
                    self.assertIn(why if rank == 1 else "rank 1 cannot encode its object", text)
                    self.assertLess(seconds, PATIENCE)  # the timeout is an hour
                    self.assertEqual(after, list(range(RANKS)))

    def test_all_ranks_reject_a_value_that_json_cannot_encode(self) -> None:
        self.check([broadcast, all_gather, gather, scatter], a_set, False, "pickle=True")

    def test_all_ranks_reject_keys_that_are_not_strings(self) -> None:
        self.check([broadcast], keyed_by_numbers, False, "a dict's key is 1")

    def test_all_ranks_reject_a_value_that_cannot_be_pickled(self) -> None:
        self.check([broadcast, all_gather, gather, scatter], threading.Lock, True, "cannot pickle")

    def test_all_ranks_reject_a_value_if_pickling_raises_any_exception(self) -> None:
        self.check([broadcast, all_gather, gather, scatter], Sneaky, True,
                   "LookupError: not this one")

    def test_all_ranks_reject_a_scatter_without_one_value_for_each_rank(self) -> None:
        self.check([scatter_too_few], a_set, False, "one value for each of 3 ranks")
        self.check([scatter_a_number], a_set, False, "scatter_object: the root's values: TypeError")


class BroadcastTest(unittest.TestCase):
    def test_the_root_gets_what_the_others_get(self) -> None:
        expected = [{"shape": [2, [3, 4]]}, {"shape": (2, (3, 4))}]
        self.assertEqual(peal.spawn(broadcast_by_each, ranks=2), [expected] * 2)


if __name__ == "__main__":
    unittest.main()
