"""A function on several ranks, each a new process of this machine."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import socket
import tempfile
import traceback
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from peal._errors import Error

Result = TypeVar("Result")
if TYPE_CHECKING:  # typing has them from Python 3.11 on
    from typing_extensions import TypeVarTuple, Unpack

    Arguments = TypeVarTuple("Arguments")


class SpawnError(Error):
    """One or more ranks of `spawn` failed: an `Error` of the kind "peer_lost".

    `errors` has for each rank what it raised, or None.
    """

    errors: list[BaseException | None]

    def __init__(self, message: str, errors: Sequence[BaseException | None]) -> None:
        super().__init__(message, "peer_lost")
        self.errors = list(errors)


def spawn(function: Callable[[Unpack[Arguments]], Result], *arguments: Unpack[Arguments],
          ranks: int = 2) -> list[Result]:
    """Calls ``function(*arguments)`` on `ranks` new processes and returns what each returned, by
    rank. There ``peal.init_process_group()`` needs no arguments, nor does torch's.

    The function, its arguments and results travel as pickles, within this machine; as everywhere in
    multiprocessing, a script that calls this does so under ``if __name__ == "__main__":``.

    When a rank raises, the others hear it from their group, and all are waited for: `SpawnError`
    shows what the first of them raised, and holds what each did. An interrupt ends them all.

    Errors: SpawnError, usage (fewer ranks than 1).
    Cost: a new interpreter for each rank.
    """
    if ranks < 1:
        raise Error(f"spawn on {ranks} ranks: it takes 1 or more", "usage")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="peal-spawn-") as folder:
        common = {
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "PEAL_SECRET": os.environ.get("PEAL_SECRET") or secrets.token_hex(32),
        }
        started: list[tuple[BaseProcess, Connection]] = []
        try:
            for rank in range(ranks):
                here, there = context.Pipe(duplex=False)
                own = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                process: BaseProcess = context.Process(
                    target=_run, args=(there, own, function, arguments))
                process.start()
                there.close()
                started.append((process, here))
            return _results(started)
        finally:
            for process, here in started:
                if process.is_alive():
                    process.kill()
                process.join()
                here.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(there: Connection, environment: dict[str, str], function: Callable[..., Any],
         arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    try:
        there.send((function(*arguments), None, ""))
    except BaseException as error:
        text = traceback.format_exc()
        try:
            there.send((None, error, text))
        except Exception:  # it cannot be pickled
            there.send((None, RuntimeError(f"{type(error).__name__}: {error}"), text))
        raise SystemExit(1) from error


def _results(started: list[tuple[BaseProcess, Connection]]) -> list[Any]:
    results: list[Any] = [None] * len(started)
    errors: list[BaseException | None] = [None] * len(started)
    first = ""
    waiting = {here: rank for rank, (_, here) in enumerate(started)}
    while waiting:
        for here in wait(list(waiting)):
            assert isinstance(here, Connection)
            rank = waiting.pop(here)
            try:
                results[rank], errors[rank], text = here.recv()
            except EOFError:
                process = started[rank][0]
                process.join()
                text = f"its process ended with exit code {process.exitcode}, and said nothing"
                errors[rank] = RuntimeError(text)
            if errors[rank] is not None and not first:
                first = f"rank {rank} of {len(started)} failed first:\n{text}"
    if first:
        raise SpawnError(first, errors)
    return results
