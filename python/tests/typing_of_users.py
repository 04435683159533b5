"""Calls of peal for a type checker: ``mypy --strict`` reads this file (test_typing.py); it never runs.

A line with ``type: ignore`` is a mistake that mypy must find. mypy also reports an ignore that is not
needed.
"""

from __future__ import annotations

from array import array
from typing import Any

import peal
from typing_extensions import assert_type


class Tensor:
    """An array with DLPack, as of NumPy or torch."""

    def __dlpack__(self, *, stream: object = None) -> object:
        return stream

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def arrays(group: peal.ProcessGroup, memory: peal.Memory, data: Tensor, data_list: list[Tensor],
           numbers: array[float]) -> None:
    group.all_reduce(data)
    group.all_reduce(numbers)
    group.all_reduce(bytearray(8))
    group.all_reduce(memoryview(memory))
    group.all_reduce(memory, peal.ReduceOp.MAX)
    group.all_reduce(data_list)
    group.all_reduce([data, numbers], "avg", timeout=1.5)
    group.all_reduce((data, data), op=peal.ReduceOp.premul_sum(0.5))
    group.all_reduce(3)  # type: ignore[arg-type]
    group.all_reduce(["data"])  # type: ignore[list-item]
    group.all_reduce(data, "mean")  # type: ignore[arg-type]
    group.all_reduce(data, "sum", 1.5)  # type: ignore[call-arg]
    group.all_reduce(data, peal.ReduceOp.MEAN)  # type: ignore[attr-defined]
    assert_type(len(memory), int)


def start(options: list[str]) -> None:
    with peal.init_process_group() as group:
        assert_type(group, peal.ProcessGroup)
    assert_type(peal.init_process_group("tcp://10.0.0.5:29500", rank=1, world_size=2, timeout=30),
                peal.ProcessGroup)
    peal.init_process_group("env://", 1)  # type: ignore[call-arg]
    assert_type(peal.TorchOptions(lazy=True), peal.TorchOptions)


def groups(group: peal.ProcessGroup, color: int | None) -> None:
    assert_type(group.rank, int)
    assert_type(group.size, int)
    assert_type(group.name, str)
    assert_type(group.timeout, float)
    assert_type(group.global_rank(0), int)
    assert_type(group.new_group([0, 1]), peal.ProcessGroup)
    assert_type(group.split(1), peal.ProcessGroup)
    assert_type(group.split(color, key=2), peal.ProcessGroup | None)
    assert_type(group.allocate(1024), peal.Memory)
    group.rank = 1  # type: ignore[misc]
    group.abort("enough")
    group.destroy(timeout=1)


def messages(group: peal.ProcessGroup, data: Tensor) -> None:
    group.send(data, 1)
    group.send(data, to=1, tag=7)
    group.send([data], 1)  # type: ignore[arg-type]
    assert_type(group.recv(data), int)
    assert_type(group.recv(data, peal.ANY_SOURCE, 7, timeout=1), int)
    assert_type(group.isend(data, 1), peal.Work)
    assert_type(group.irecv(data, source=1), peal.Work)
    assert_type(group.batch_isend_irecv([("send", data, 1), ("recv", bytearray(4), 1, 7)]),
                peal.Work)
    group.batch_isend_irecv([("post", data, 1)])  # type: ignore[list-item]


def works(work: peal.Work) -> None:
    work.wait()
    work.wait(1.5)
    assert_type(work.is_completed(), bool)
    assert_type(work.exception(), peal.Error | None)
    assert_type(work.source(), int)


def collectives(group: peal.ProcessGroup, data: Tensor) -> None:
    group.broadcast(data, 0)
    group.reduce(data, 0, "max")
    group.barrier()
    group.monitored_barrier(timeout=1)
    assert_type(group.broadcast_async([data], root=0), peal.Work)
    assert_type(group.all_reduce_async(data), peal.Work)
    assert_type(group.reduce_async(data, 0), peal.Work)
    assert_type(group.barrier_async(), peal.Work)
    group.broadcast(data)  # type: ignore[call-arg]


def blocks(group: peal.ProcessGroup, one: Tensor, each: list[Tensor]) -> None:
    is_root = group.rank == 0
    group.scatter(one if is_root else None, one, 0)
    group.scatter(one, one, 0, [1, 2])
    group.scatter(each if is_root else [], one, 0)
    group.scatter(each, one, 0, [1, 2])  # type: ignore[call-overload]
    group.gather(one, one if is_root else None, 0, counts=[1, 2])
    group.gather(one, each if is_root else [], 0)
    group.gather(each, one, 0)  # type: ignore[call-overload]
    group.all_gather(one, one)
    group.all_gather(one, each)
    group.all_gather(each, each)
    group.all_gather(each, one)  # type: ignore[call-overload]
    group.reduce_scatter(one, one, "sum", [1, 2])
    group.reduce_scatter(each, one, peal.ReduceOp.SUM)
    group.reduce_scatter(each, each)
    group.all_to_all(one, one, [1, 2], [2, 1])
    group.all_to_all(each, tuple(each))
    group.all_to_all(one, each)  # type: ignore[call-overload]
    assert_type(group.scatter_async(one, one, 0), peal.Work)
    assert_type(group.gather_async(one, each, 0), peal.Work)
    assert_type(group.all_gather_async(one, each), peal.Work)
    assert_type(group.reduce_scatter_async(each, one), peal.Work)
    assert_type(group.all_to_all_async(each, each), peal.Work)


def objects(group: peal.ProcessGroup) -> None:
    assert_type(group.broadcast_object({"a": 1}, 0), Any)
    assert_type(group.all_gather_object("a", pickle=True), list[Any])
    assert_type(group.gather_object("a", root=0), list[Any] | None)
    assert_type(group.scatter_object(None, 0, timeout=1), Any)


def on_each_rank(name: str, times: int = 1) -> float:
    return 0.5 * times * len(name)


def spawning() -> None:
    assert_type(peal.spawn(on_each_rank, "a", 3, ranks=4), list[float])
    assert_type(peal.spawn(on_each_rank, "a"), list[float])
    peal.spawn(on_each_rank, 3)  # type: ignore[arg-type]
    try:
        peal.spawn(on_each_rank, "a", 3)
    except peal.SpawnError as error:
        assert_type(error.errors, list[BaseException | None])
    except peal.Error as error:
        print(error.kind == "peer_lost")
        print(error.kind == "peer lost")  # type: ignore[comparison-overlap]
