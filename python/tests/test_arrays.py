"""Groups of the package peal, over arrays, without torch."""

from __future__ import annotations

import array
import unittest
from typing import Any

import peal
from needs import numpy_wanted, torch_wanted


def reduce_an_array() -> list[float]:
    with peal.init_process_group() as group:
        data = array.array("f", [1.0, float(group.rank)])
        group.all_reduce(data)
        return data.tolist()


def reduce_asynchronously() -> list[int]:
    with peal.init_process_group() as group:
        data = array.array("q", [group.rank + 1] * 3)
        work = group.all_reduce_async(data, "max")
        work.wait()
        assert work.is_completed() and work.exception() is None
        return data.tolist()


def average_integers() -> list[int]:
    with peal.init_process_group() as group:
        data = array.array("h", [group.rank + 1, -group.rank - 1, 20000])
        group.all_reduce(data, "avg")
        return data.tolist()


def every_operation() -> list[str]:
    """The names of the operations with wrong results."""
    wrong = []

    def check(name: str, got: Any, expected: Any) -> None:
        if list(got) != list(expected):
            wrong.append(f"{name}: {list(got)} is not {list(expected)}")

    def ints(*values: int) -> array.array[int]:
        return array.array("i", values)

    with peal.init_process_group() as group:
        me, n = group.rank, group.size
        data = ints(me, 10 * me)
        group.broadcast(data, n - 1)
        check("broadcast", data, [n - 1, 10 * (n - 1)])
        data = ints(me + 1)
        group.reduce(data, 0, peal.ReduceOp.PRODUCT)
        if me == 0:
            check("reduce", data, [24 if n == 4 else 2 if n == 2 else 6 if n == 3 else 1])
        out = ints(0)
        group.scatter(ints(*range(100, 100 + n)) if me == 0 else None, out, 0)
        check("scatter", out, [100 + me])
        every = ints(*[0] * n)
        group.gather(out, every if me == 0 else None, 0)
        if me == 0:
            check("gather", every, range(100, 100 + n))
        group.gather(out, every if me == 0 else [], 0)  # only the root's form matters
        group.all_gather(out, every)
        check("all_gather", every, range(100, 100 + n))
        parts = [ints(0) for _ in range(n)]
        group.all_gather(out, parts)
        check("all_gather to a list", [p[0] for p in parts], range(100, 100 + n))
        group.reduce_scatter(every, out)
        check("reduce_scatter", out, [n * (100 + me)])
        sent = ints(*[10 * me + r for r in range(n)])
        group.all_to_all(sent, every)
        check("all_to_all", every, [10 * r + me for r in range(n)])
        group.barrier()
        group.monitored_barrier()
        right, left = (me + 1) % n, (me - 1) % n
        work = group.isend(ints(me), right, tag=3)
        got = ints(0)
        check("source", [group.recv(got, left, tag=3)], [left])
        work.wait()
        check("recv", got, [left])
        group.batch_isend_irecv([("recv", got, left), ("send", ints(me), right)]).wait()
        check("batch", got, [left])
        half = group.split(me % 2)
        assert half is not None
        check("split", [half.size], [(n + 1 - me % 2) // 2])
        check("all_gather_object", group.all_gather_object({"rank": me}),
              [{"rank": r} for r in range(n)])
        check("broadcast_object", [group.broadcast_object("x" * (me + 1), n - 1)], ["x" * n])
        check("gather_object", group.gather_object(me, 0) or range(n), range(n))
        check("scatter_object", [group.scatter_object([str(r) for r in range(n)], 0)], [str(me)])
    return wrong


def blocks_of_any_size_in_lists() -> bool:
    with peal.init_process_group() as group:
        mine = array.array("i", [group.rank] * (group.rank + 1))
        expected = [array.array("i", [r] * (r + 1)) for r in range(group.size)]
        at_root = group.rank == 0
        empty = [array.array("i", [-1] * (r + 1)) for r in range(group.size)]
        gathered = empty if at_root else None
        group.gather(mine, gathered, 0)
        back = array.array("i", [-1] * (group.rank + 1))
        group.scatter(gathered, back, 0)
        return back == mine and gathered == (expected if at_root else None)


def raise_something() -> None:
    with peal.init_process_group() as group:
        group.barrier()
        if group.rank == 1:
            raise KeyError("no such thing")
        group.barrier()


class ArraysTest(unittest.TestCase):
    def test_a_sum_is_the_same_on_all_ranks(self) -> None:
        for size in (1, 2, 4):
            expected = [float(size), float(sum(range(size)))]
            self.assertEqual(peal.spawn(reduce_an_array, ranks=size), [expected] * size)

    def test_works_can_be_waited_for(self) -> None:
        self.assertEqual(peal.spawn(reduce_asynchronously, ranks=2), [[2, 2, 2]] * 2)

    def test_an_average_of_integers_is_truncated_and_its_sum_wraps(self) -> None:
        for size, expected in ((1, [1, -1, 20000]), (2, [1, -1, (40000 - 65536) // 2]),
                               (4, [2, -2, (80000 - 65536) // 4])):
            self.assertEqual(peal.spawn(average_integers, ranks=size), [expected] * size)

    def test_every_operation_has_the_right_result(self) -> None:
        for size in (1, 2, 3, 4):
            for wrong in peal.spawn(every_operation, ranks=size):
                self.assertEqual(wrong, [])

    def test_lists_have_blocks_of_any_size(self) -> None:
        for size in (1, 3):
            self.assertEqual(peal.spawn(blocks_of_any_size_in_lists, ranks=size), [True] * size)

    def test_peers_receive_the_exception_of_a_rank(self) -> None:
        with self.assertRaises(peal.SpawnError) as caught:
            peal.spawn(raise_something, ranks=3)
        errors = caught.exception.errors
        self.assertIsInstance(errors[1], KeyError)
        for rank in (0, 2):
            error = errors[rank]
            assert isinstance(error, peal.Error)
            self.assertEqual(error.kind, "peer_lost")
            self.assertIn("rank 1 threw: KeyError: 'no such thing'", str(error))


def reduce_with_numpy() -> list[Any]:
    import numpy

    with peal.init_process_group() as group:
        halves = numpy.ones(3, dtype=numpy.float16)
        group.all_reduce(halves)
        matrix = numpy.full((2, 3), group.rank + 1j)
        group.all_reduce(matrix)
        every = numpy.zeros((group.size, 2), dtype=numpy.int64)
        group.all_gather(numpy.array([group.rank, 7]), every)
        return [halves.tolist(), matrix.tolist(), every.tolist()]


def reduce_with_torch() -> list[Any]:
    import torch

    with peal.init_process_group() as group:
        data = torch.full((3,), group.rank + 1.0, dtype=torch.bfloat16)
        group.all_reduce(data)
        return data.tolist()


class KindsOfArraysTest(unittest.TestCase):
    @numpy_wanted
    def test_numpy_arrays_of_any_shape_and_type(self) -> None:
        for got in peal.spawn(reduce_with_numpy, ranks=2):
            self.assertEqual(got, [[2.0] * 3, [[1 + 2j] * 3] * 2, [[0, 7], [1, 7]]])

    @numpy_wanted
    def test_numpy_arrays_that_are_strided_or_read_only_are_rejected(self) -> None:
        import numpy

        with peal.init_process_group() as group:
            with self.assertRaises(peal.Error) as caught:
                group.all_reduce(numpy.ones(6)[::2])
            self.assertIn("contiguous", str(caught.exception))
            frozen = numpy.ones(3)
            frozen.flags.writeable = False
            with self.assertRaises(peal.Error) as caught:
                group.all_reduce(frozen)
            self.assertIn("cannot be written", str(caught.exception))

    @numpy_wanted
    def test_errors_name_numpy_types_that_peal_does_not_support(self) -> None:
        import numpy

        times = numpy.array(["2026-01-01", "2026-01-02"], dtype="datetime64[s]")
        out = numpy.zeros(2, dtype=numpy.int64)
        with peal.init_process_group() as group:
            for call in (lambda: group.all_reduce(times),  # written
                         lambda: group.all_gather(times, out),  # read
                         lambda: group.all_gather(times - times, out)):
                with self.assertRaises(peal.Error) as caught:
                    call()
                text = str(caught.exception)
                self.assertEqual(caught.exception.kind, "unsupported")
                self.assertRegex(text, r"no access to its elements of (datetime64|timedelta64)\[s\]")
                self.assertIn("peal's types are bool", text)
                self.assertNotIn("written", text)

    @numpy_wanted
    @torch_wanted
    def test_the_error_of_a_tensor_that_cannot_be_shared_says_why(self) -> None:
        import torch

        data, out = torch.ones(1, requires_grad=True), torch.zeros(1)
        with peal.init_process_group() as group, self.assertRaises(peal.Error) as caught:
            group.all_gather(data, out)
        self.assertIn("use tensor.detach()", str(caught.exception))

    @torch_wanted
    def test_torch_tensors_are_used_by_dlpack(self) -> None:
        self.assertEqual(peal.spawn(reduce_with_torch, ranks=2), [[3.0] * 3] * 2)


class ArgumentsTest(unittest.TestCase):
    """On a group of one."""

    def setUp(self) -> None:
        self.group = peal.init_process_group()
        self.addCleanup(self.group.destroy)

    def refused(self, kind: str, words: str, call: Any, *arguments: Any, **named: Any) -> None:
        with self.assertRaises(peal.Error) as caught:
            call(*arguments, **named)
        self.assertEqual(caught.exception.kind, kind)
        self.assertIn(words, str(caught.exception))

    def test_a_group_has_a_name_a_rank_and_a_size(self) -> None:
        self.assertEqual(repr(self.group), "<peal.ProcessGroup world: rank 0 of 1>")

    def test_objects_that_are_not_arrays_are_rejected(self) -> None:
        self.refused("usage", "is not an array", self.group.all_reduce, 3)
        self.refused("usage", "a list means one array for each item", self.group.all_reduce, [1.0, 2.0])

    def test_a_read_only_output_is_rejected(self) -> None:
        self.refused("usage", "cannot be written", self.group.all_reduce, b"bytes")

    def test_a_rejected_array_is_released(self) -> None:
        numbers = array.array("u", "no number")
        self.refused("unsupported", "format", self.group.all_reduce, numbers)
        numbers.append("!")  # fails while a buffer of its memory is held

    def test_the_average_of_bools_is_rejected(self) -> None:
        truth = memoryview(bytearray(2)).cast("?")
        self.refused("unsupported", "avg has no meaning for bool", self.group.all_reduce, truth,
                     "avg")

    def test_an_unknown_op_is_rejected(self) -> None:
        one = array.array("f", [1])
        self.refused("usage", "is not a reduction", self.group.all_reduce, one, "mean")

    def test_a_type_that_peal_does_not_support_is_rejected(self) -> None:
        self.refused("unsupported", "format", self.group.all_reduce, array.array("I", [1]))

    def test_counts_together_with_a_list_are_rejected(self) -> None:
        one = array.array("i", [1])
        for call, arguments in ((self.group.scatter, ([one], one, 0)),
                                (self.group.gather, (one, [one], 0)),
                                (self.group.all_gather, (one, [one])),
                                (self.group.reduce_scatter, ([one], one, "sum"))):
            self.refused("usage", "counts", call, *arguments, [1])
        self.refused("usage", "counts", self.group.all_to_all, [one], [one], [1], [1])

    def test_a_negative_color_is_rejected_and_the_color_none_gives_no_group(self) -> None:
        self.refused("usage", "color", self.group.split, -1)
        self.assertIsNone(self.group.split(None))

    def test_a_negative_timeout_is_rejected(self) -> None:
        self.refused("usage", "timeout", self.group.barrier, timeout=-1)

    def test_objects_that_json_cannot_encode_are_rejected_without_pickle(self) -> None:
        self.refused("usage", "pickle=True", self.group.all_gather_object, {1, 2})
        self.assertEqual(self.group.all_gather_object({1, 2}, pickle=True), [{1, 2}])


if __name__ == "__main__":
    unittest.main()
