"""Processes started by torch.multiprocessing make a group.

    python examples/python/first_group.py --ranks 4
    python examples/python/first_group.py --init-method tcp://127.0.0.1:29511
    python examples/python/first_group.py --init-method file:///tmp/where-ranks-meet
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch.multiprocessing import Process


def run(rank: int, size: int) -> None:
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"rank {rank} of {size}: the sum of the ones is {total.item():.0f}", flush=True)


def init_process(rank: int, size: int, backend: str, init_method: str) -> None:
    """Every process gets the address of rank 0, joins the group there, and runs."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group(backend, init_method=init_method, rank=rank, world_size=size)
    run(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backend", default="peal")
    parser.add_argument("--init-method", default="env://", help="the place where the processes meet")
    arguments = parser.parse_args()
    processes = []
    for rank in range(arguments.ranks):
        process = Process(target=init_process, args=(rank, arguments.ranks, arguments.backend,
                                                     arguments.init_method))
        process.start()
        processes.append(process)
    for process in processes:
        process.join()
    raise SystemExit(any(process.exitcode for process in processes))
