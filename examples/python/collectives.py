"""Runs every collective operation once. Rank r begins with values that depend on r, so that the output
shows how the data moved.

    peal run -n 4 python examples/python/collectives.py
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist


def show(what: str, *tensors: torch.Tensor) -> None:
    """Prints a line for each rank with values, in the order of the ranks."""
    values = " ".join(str(value) for tensor in tensors for value in tensor.tolist())
    for turn in range(dist.get_world_size()):
        if values and turn == dist.get_rank():
            print(f"{what}: rank {turn} has {values}", flush=True)
        dist.barrier()


def to_one_or_from_one(rank: int, size: int) -> None:
    data = torch.tensor([rank, 10 * rank])
    dist.broadcast(data, src=size - 1)
    show("broadcast from the last rank", data)

    data = torch.tensor([rank + 1, 10 * (rank + 1)])
    dist.reduce(data, dst=0)
    show("reduce to rank 0", *([data] if rank == 0 else []))  # undefined on other ranks

    own = torch.zeros(1, dtype=torch.int64)
    parts = [torch.tensor([100 + r]) for r in range(size)] if rank == 0 else None
    dist.scatter(own, parts, src=0)
    show("scatter from rank 0", own)

    all_own = [torch.zeros_like(own) for _ in range(size)] if rank == 0 else None
    dist.gather(own, all_own, dst=0)
    show("gather to rank 0", *(all_own or []))


def reduced_for_all(rank: int, size: int) -> None:
    for name in ("SUM", "PRODUCT", "MAX", "MIN"):
        data = torch.tensor([rank + 1, 10 * (rank + 1)])
        dist.all_reduce(data, op=getattr(dist.ReduceOp, name))
        show(f"all_reduce by {name}", data)

    data = torch.tensor([rank + 1])
    work = dist.all_reduce(data, async_op=True)
    work.wait()  # before this, do not read or write data
    show("all_reduce without waiting", data)

    blocks = torch.tensor([10 * rank + r for r in range(size)])  # block r is for rank r
    own = torch.zeros(1, dtype=torch.int64)
    dist.reduce_scatter(own, list(blocks.split(1)))
    show("reduce_scatter of a list", own)
    dist.reduce_scatter_tensor(own, blocks)
    show("reduce_scatter of a tensor", own)


def all_from_all(rank: int, size: int) -> None:
    own = torch.tensor([100 + rank])
    all_own = [torch.zeros_like(own) for _ in range(size)]
    dist.all_gather(all_own, own)
    show("all_gather to a list", *all_own)

    together = torch.zeros(size, dtype=torch.int64)
    dist.all_gather_into_tensor(together, own)
    show("all_gather to a tensor", together)

    sent = torch.tensor([10 * rank + r for r in range(size)])
    received = torch.zeros_like(sent)
    dist.all_to_all_single(received, sent)
    show("all_to_all of a tensor", received)
    lists = [torch.zeros_like(own) for _ in range(size)]
    dist.all_to_all(lists, list(sent.split(1)))
    show("all_to_all of a list", *lists)


def in_a_smaller_group(rank: int) -> None:
    group = dist.new_group([0, 1])  # all ranks call it, not only the members
    data = torch.tensor([rank + 1])
    if rank < 2:
        dist.all_reduce(data, op=dist.ReduceOp.SUM, group=group)
    show("all_reduce of ranks 0 and 1", data)


def main() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    to_one_or_from_one(rank, size)
    reduced_for_all(rank, size)
    all_from_all(rank, size)
    if size > 1:
        in_a_smaller_group(rank)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    dist.init_process_group(parser.parse_args().backend)
    main()
    dist.destroy_process_group()
