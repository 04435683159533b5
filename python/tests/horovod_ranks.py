"""Runs functions on several ranks, each a process with the variables of `peal run`. The functions call
hvd.init() themselves."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import time
import traceback
import unittest
from typing import Any, Callable

import ranks
from programs import PATIENCE, reserved_port
from ranks import Outcome

# torch imports its compiler when a program makes its first optimizer, which takes seconds on each rank.
ranks._context.set_forkserver_preload(["torch", "torch.distributed", "torch._dynamo"])


def outcomes(size: int, function: Callable[..., Any], *arguments: Any,
             environment: dict[str, str] | None = None) -> list[Outcome]:
    """Calls function(*arguments) on each rank, and returns the outcomes by rank."""
    started = []
    with reserved_port() as torch_port, reserved_port() as peal_port:
        for rank in range(size):
            here, there = ranks._context.Pipe(duplex=False)
            own = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                   "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": torch_port,
                   "PEAL_MASTER_PORT": peal_port, **(environment or {})}
            process = ranks._context.Process(target=_rank, args=(own, there, function, arguments))
            process.start()
            there.close()
            started.append((process, here))
        ends = []
        deadline = time.monotonic() + PATIENCE
        for process, here in started:
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


def results(size: int, function: Callable[..., Any], *arguments: Any,
            environment: dict[str, str] | None = None) -> list[Any]:
    """As outcomes, but returns the results and fails if a rank has failed."""
    ends = outcomes(size, function, *arguments, environment=environment)
    failed = [f"rank {rank} {end}" for rank, end in enumerate(ends) if end.error is not None]
    if failed:
        raise AssertionError("\n".join(failed))
    return [end.result for end in ends]


class JobOfOneTest(unittest.TestCase):
    """Tests in a job of this one process, without a launcher."""

    @classmethod
    def setUpClass(cls) -> None:
        import peal.horovod as hvd

        hvd.init()

    @classmethod
    def tearDownClass(cls) -> None:
        import peal.horovod as hvd

        hvd.shutdown()


class RanksTest(unittest.TestCase):
    """Tests whose programs return what failed on a rank."""

    def passes(self, ranks: int, program: Callable[..., list[str]], *arguments: Any,
               environment: dict[str, str] | None = None) -> None:
        for rank, failures in enumerate(results(ranks, program, *arguments, environment=environment)):
            self.assertEqual(failures[:20], [], f"rank {rank} of {ranks}, {len(failures)} failures")


def _rank(environment: dict[str, str], there: Any, function: Callable[..., Any],
          arguments: tuple[Any, ...]) -> None:
    import torch

    faulthandler.dump_traceback_later(PATIENCE - 20, exit=True)
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        end = Outcome(result=function(*arguments))
    except Exception as error:
        end = Outcome(error=str(error), kind=type(error).__name__, where=traceback.format_exc())
    there.send(end)
    there.close()
