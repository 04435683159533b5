"""Runs functions on several ranks. Each rank is a process; the ranks meet over a file."""

from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import os
import tempfile
import time
import traceback
from dataclasses import dataclass
from typing import Any, Callable

from programs import PATIENCE

# Ranks are forked from a process that has imported torch, because the import takes seconds. So the
# import of torch and of the backend must not start a thread or open a connection.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "torch.distributed"])


@dataclass
class Outcome:
    """How a rank ended: with a result, or with an error and its traceback."""

    result: Any = None
    error: str | None = None
    kind: str | None = None  # the class name of the exception
    where: str | None = None

    def __str__(self) -> str:
        if self.error is None:
            return f"returned {self.result!r}"
        return f"raised {self.where}" if self.where else self.error


def outcomes(size: int, function: Callable[..., Any], *arguments: Any, backend: str = "peal",
             timeout: float = PATIENCE, environment: dict[str, str] | None = None) -> list[Outcome]:
    """Calls function(*arguments) on each rank of a default group of `size`, and returns the outcomes.
    `timeout` is the group's, in seconds. A rank that ends without an outcome has the error "ended
    with exit code ..."."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(size):
            here, there = _context.Pipe(duplex=False)
            process = _context.Process(
                target=_rank, args=(rank, size, folder, backend, timeout, environment or {}, there,
                                    function, arguments))
            process.start()
            there.close()
            ranks.append((process, here))
        ends = []
        deadline = time.monotonic() + min(timeout, PATIENCE) + PATIENCE
        for process, here in ranks:
            end = None
            with contextlib.suppress(EOFError):
                if here.poll(max(0, deadline - time.monotonic())):
                    end = here.recv()
            process.join(max(1, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
                end = Outcome(error="hung, and was killed")
            ends.append(end or Outcome(error=f"ended with exit code {process.exitcode}"))
        return ends


def results(size: int, function: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """As outcomes, but returns the results and fails if a rank has failed."""
    ends = outcomes(size, function, *arguments, **options)
    failed = [f"rank {rank} {end}" for rank, end in enumerate(ends) if end.error is not None]
    if failed:
        raise AssertionError("\n".join(failed))
    return [end.result for end in ends]


def _rank(rank: int, size: int, folder: str, backend: str, timeout: float,
          environment: dict[str, str], there: Any, function: Callable[..., Any],
          arguments: tuple[Any, ...]) -> None:
    import torch
    import torch.distributed as dist

    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        dist.init_process_group(backend, init_method=f"file://{folder}/store", rank=rank,
                                world_size=size, timeout=datetime.timedelta(seconds=timeout))
        end = Outcome(result=function(*arguments))
        dist.destroy_process_group()
    except Exception as error:
        end = Outcome(error=str(error), kind=type(error).__name__, where=traceback.format_exc())
        if dist.is_initialized():
            dist.destroy_process_group()
    finally:
        there.send(end)
        there.close()


def all_reduced(group: Any = None) -> float:
    """The sum of ones over the group, twice: blocking on this thread, and asynchronous."""
    import torch
    import torch.distributed as dist

    data = torch.ones(3)
    dist.all_reduce(data, group=group)
    dist.all_reduce(data, group=group, async_op=True).wait()
    return float(data[0])
