"""An all_reduce by hand: every rank passes on the data that it receives from the left, until every rank
has added the data of all ranks.

    peal run -n 4 python examples/python/ring_all_reduce.py
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist


def all_reduce(data: torch.Tensor) -> torch.Tensor:
    """The sum over all ranks, in n - 1 steps with one message each."""
    rank, size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    total = data.clone()
    passing, coming = data.clone(), torch.empty_like(data)
    for _ in range(size - 1):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        total += coming
        request.wait()
        passing, coming = coming, passing
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    dist.init_process_group(parser.parse_args().backend)
    data = torch.arange(5.0) + dist.get_rank()
    expected = data.clone()
    dist.all_reduce(expected)
    total = all_reduce(data)
    print(f"rank {dist.get_rank()} has {total.tolist()}", flush=True)
    assert torch.equal(total, expected)
    dist.destroy_process_group()
