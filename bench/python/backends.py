#!/usr/bin/env python3
"""Compares torch.distributed on peal, gloo and torch's "fake" backend in one run.

    bench/python/backends.py [--rounds N] [--json FILE] [PART...]

Two ranks run on this machine, each with a core and a thread. The parts are:

- `calls`: the cost of a call of a small operation
- `ddp`: the time that DistributedDataParallel adds to a step of two processes that do not communicate
  ("alone"). "reducer" is DistributedDataParallel that sends nothing: the cost of torch's reducer, for any
  backend. "peal ddp" is peal.DistributedDataParallel, "horovod" is peal.horovod's DistributedOptimizer. "lockstep" also ends each backward pass with a
  barrier: the cost of the wait for the slower rank.
- `fsdp`: a step of FSDP2
- `horovod`: blocking calls of operations by name (peal.horovod), beside torch.distributed on peal. The last
  lines are one step of 200 tensors, which each rank submits in a random order of its own.

Each round uses new processes, because the placement of their memory changes a step by some percent. In
`calls` and `ddp`, all columns take turns in the same two processes, because the speed of the machine
changes from second to second. Each round begins with another column, and a part whose columns share
processes has a few more rounds, until each column has been first equally often. The processes keep the
memory that they free: otherwise glibc returns it to the system in each step of the column whose gradients
happen to end the heap. The output is the medians over the rounds, and with at least two rounds the
quartiles; "of alone" is the median of the rounds' ratios to "alone".
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import functools
import json
import multiprocessing
import os
import random
import socket
import statistics
import sys
import tempfile
import time
from typing import Any, Callable

RANKS = 2
KEEP_FREED_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}  # for glibc


# ---- measurements in a rank: microseconds for each call or step, by column

Figures = dict[str, dict[str, float]]


def calls(columns: list[str]) -> Figures:
    """The time of a blocking call of each operation, most on 4 bytes, as in a script."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed import fake_pg  # registers "fake"

    assert fake_pg
    one = torch.ones(1)
    both = torch.ones(RANKS)
    large = torch.ones(1 << 20)
    operations: dict[str, Callable[[Any], Any]] = {
        "all_reduce of 4 B": lambda group: dist.all_reduce(one, group=group),
        "broadcast of 4 B": lambda group: dist.broadcast(one, 0, group=group),
        "all_gather of 4 B": lambda group: dist.all_gather_into_tensor(both, one, group=group),
        "barrier": lambda group: dist.barrier(group=group),
        "all_reduce of 4 MiB": lambda group: dist.all_reduce(large, group=group),
    }
    groups = {column: dist.new_group(backend=column) for column in sorted(columns)}
    figures: Figures = {column: {} for column in columns}
    for name, operation in operations.items():
        is_large = "MiB" in name
        steps = {column: functools.partial(operation, groups[column]) for column in columns
                 if not (is_large and column == "fake")}
        for column, us in _in_turns(steps, 5, 10 if is_large else 200).items():
            figures[column][name] = us
    return figures


def _time(operation: Callable[[], Any], times: int) -> float:
    for _ in range(times // 5):
        operation()
    begin = time.perf_counter()
    for _ in range(times):
        operation()
    return (time.perf_counter() - begin) / times * 1e6


def ddp(columns: list[str]) -> Figures:
    import torch
    import torch.distributed as dist
    from torch import nn

    gloo = dist.new_group(backend="gloo")
    convolutions = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Linear(128, 10))
    layers = nn.Sequential(
        nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048),
        nn.ReLU(), nn.Linear(2048, 10))
    figures: Figures = {column: {} for column in columns}
    for name, model, data, turns in (
            ("step of a small convolutional network", convolutions, torch.randn(8, 1, 28, 28), 20),
            ("step of an MLP of 10 million parameters", layers, torch.randn(64, 1024), 10)):
        steps = {column: _step(column, copy.deepcopy(model), data, gloo) for column in columns}
        for column, us in _in_turns(steps, turns).items():
            figures[column][name] = us
    return figures


def _in_turns(steps: dict[str, Callable[[], None]], turns: int, times: int = 1) -> dict[str, float]:
    """The median time of the steps of each column. Each turn has three samples of `times` steps. The first
    step of a turn and the steps before all turns do not count."""
    samples: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(20):
            step()
    for _ in range(turns):
        for name, step in steps.items():
            step()
            samples[name] += [_time(step, times) for _ in range(3)]
    return {name: statistics.median(of) for name, of in samples.items()}


def _step(column: str, model: Any, data: Any, gloo: Any) -> Callable[[], None]:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    if column == "peal ddp":
        import peal

        model = peal.DistributedDataParallel(model)
    elif column not in ("alone", "horovod"):
        model = DistributedDataParallel(model, process_group=gloo if column == "gloo" else None)
    if column in ("reducer", "lockstep"):
        model.register_comm_hook(None, lambda _, bucket: _done(bucket.buffer()))
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.001)
    if column == "horovod":
        import peal.horovod as hvd

        hvd.init()
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    labels = torch.randint(10, (len(data),))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data), labels).backward()
        if column == "lockstep":
            dist.barrier()
        optimizer.step()

    return step


def _done(value: Any) -> Any:
    import torch

    future: Any = torch.futures.Future()
    future.set_result(value)
    return future


def horovod(columns: list[str]) -> Figures:
    import torch
    import torch.distributed as dist

    import peal.horovod as hvd

    hvd.init()
    figures: Figures = {column: {} for column in columns}
    for name, count, times in (("4 B", 1, 500), ("64 KiB", 1 << 14, 200), ("1 MiB", 1 << 18, 50),
                               ("4 MiB", 1 << 20, 10), ("16 MiB", 1 << 22, 4), ("64 MiB", 1 << 24, 1)):
        values = torch.ones(count)
        calls: dict[str, Callable[[], Any]] = {
            "horovod": functools.partial(hvd.allreduce_, values, name="values", op=hvd.Sum),
            "peal": functools.partial(dist.all_reduce, values),
        }
        for column, us in _in_turns({column: calls[column] for column in columns}, 7, times).items():
            figures[column][f"allreduce of {name}"] = us
    tensors = [torch.ones(1024) for _ in range(200)]
    order = list(range(len(tensors)))
    mine = random.Random(hvd.rank())

    def step() -> None:
        mine.shuffle(order)
        handles = [hvd.allreduce_async_(tensors[i], name=f"tensor {i}", op=hvd.Sum) for i in order]
        for handle in handles:
            hvd.synchronize(handle)

    figures["horovod"]["200 tensors of 4 KiB in random order"] = _in_turns({"horovod": step}, 20)["horovod"]
    hvd.shutdown()
    return figures


def fsdp(columns: list[str]) -> Figures:
    import torch
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (RANKS,))
    model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(6)))
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(32, 1024)

    def step() -> None:
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    step()
    times = [_time(step, 1) for _ in range(12)]
    return {columns[0]: {"step of FSDP2, 6 million parameters": statistics.median(times)}}


# The columns of a part; the columns of one list share processes.
PARTS: dict[str, tuple[Callable[[list[str]], Figures], list[list[str]]]] = {
    "calls": (calls, [["fake", "gloo", "peal"]]),
    "ddp": (ddp, [["alone", "reducer", "lockstep", "gloo", "peal", "peal ddp", "horovod"]]),
    "fsdp": (fsdp, [["gloo"], ["peal"]]),
    "horovod": (horovod, [["horovod", "peal"]]),
}


# ---- running


def _rank(rank: int, part: str, columns: list[str], folder: str, port: int, there: Any) -> None:
    import torch
    import torch.distributed as dist

    faulthandler.enable()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    os.environ |= {"HOROVOD_RANK": str(rank), "HOROVOD_SIZE": str(RANKS), "RANK": str(rank),
                   "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo" if columns == ["gloo"] else "peal",
                            init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    there.send(PARTS[part][0](columns))
    dist.destroy_process_group()


def measure(part: str, columns: list[str]) -> Figures:
    """The means over the ranks."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        ends, processes = [], []
        for rank in range(RANKS):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_rank, args=(rank, part, columns, folder, port, there))
            process.start()
            there.close()
            ends.append(here)
            processes.append(process)
        figures = [end.recv() for end in ends]
        for rank, process in enumerate(processes):
            process.join()
            if process.exitcode != 0:  # its figures have arrived, so they count
                print(f"rank {rank} of {part} ({', '.join(columns)}) ended with {process.exitcode}",
                      file=sys.stderr)
    return {column: {what: statistics.mean(of[column][what] for of in figures) for what in of_one}
            for column, of_one in figures[0].items()}


def show(part: str, samples: dict[str, dict[str, list[float]]]) -> None:
    print(f"\n{part}: microseconds, the median of the rounds (quartiles)")
    for name in dict.fromkeys(what for figures in samples.values() for what in figures):
        cells = []
        for column, figures in samples.items():
            if figures.get(name):
                cells.append(f"{column} {_summary(figures[name])}")
                alone = samples.get("alone", {}).get(name)
                if alone and column != "alone":
                    ratios = [us / base for us, base in zip(figures[name], alone)]
                    cells[-1] += f", {statistics.median(ratios):.3f} of alone"
        print(f"  {name:42} {'  '.join(cells)}")


def _summary(rounds: list[float]) -> str:
    if len(rounds) == 1:
        return f"{rounds[0]:.1f}"
    low, middle, high = statistics.quantiles(rounds, n=4)
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="also write every sample to this file, one on each line")
    arguments = parser.parse_args()
    for part in arguments.parts or PARTS:
        if part not in PARTS:
            parser.error(f"unknown part \"{part}\"; use one of {', '.join(PARTS)}")
    os.environ.update(KEEP_FREED_MEMORY)  # the processes of ranks inherit it
    lines = []
    for part in arguments.parts or PARTS:
        samples: dict[str, dict[str, list[float]]] = {
            column: {} for columns in PARTS[part][1] for column in columns}
        together = max(map(len, PARTS[part][1]))
        for first in range(-(-arguments.rounds // together) * together):
            for columns in PARTS[part][1]:
                turn = first % len(columns)
                for column, figures in measure(part, columns[turn:] + columns[:turn]).items():
                    for what, us in figures.items():
                        samples[column].setdefault(what, []).append(us)
                        lines.append({"part": part, "backend": column, "what": what, "us": us})
        show(part, samples)
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
