"""Runs a function on several ranks, each a new process on this machine."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import multiprocessing.spawn
import os
import pickle
import secrets
import signal
import socket
import sys
import time
import traceback
import types
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence, TypeVar

from peal import _core
from peal._errors import Error, Facts, Kind, words_of

Result = TypeVar("Result")
if TYPE_CHECKING:  # in typing from Python 3.11 on
    from typing_extensions import TypeVarTuple, Unpack

    Arguments = TypeVarTuple("Arguments")

_END_S = 10.0  # the time that ranks get to end after the last outcome has arrived
_GRACE_S = 5.0  # the time for the other outcomes after a failure: a group notices it in a second
_BEGUN = "begun"  # a rank's first message, just before it calls the function


class SpawnError(Error):
    """One or more ranks of `spawn` failed.

    `kind` is that of the `Error` that the first rank raised; "resource" for MemoryError and OSError;
    "aborted" for any other exception; "peer_lost" if its process ended without a result. `rank` is that
    rank. `errors` has an entry for each rank: its exception, or None.
    """

    errors: list[BaseException | None]

    def __init__(self, message: str, kind: Kind, errors: Sequence[BaseException | None]) -> None:
        super().__init__(message, kind)
        self.errors = list(errors)


def spawn(function: Callable[[Unpack[Arguments]], Result], *arguments: Unpack[Arguments],
          ranks: int = 2) -> list[Result]:
    """Calls ``function(*arguments)`` in `ranks` new processes and returns the list of results, by
    rank. In these processes ``peal.init_process_group()`` and torch's init_process_group need no
    arguments.

    The function, its arguments and results are pickled and stay on this machine. As always with
    multiprocessing, a script must call spawn under ``if __name__ == "__main__":``.

    If a rank raises, its group notifies the other ranks; ranks that still run 5 seconds later are
    killed. The `__cause__` of `SpawnError` is the first exception that is not just the loss of another
    rank. `SpawnError.errors` holds the exceptions of all ranks. If an exception cannot be pickled, a
    RuntimeError with its text replaces it. An exit with code 0 gives the result None. After the last
    outcome, ranks have 10 seconds to leave their groups and flush their files. An interrupt kills all
    ranks, and so does the end of this process. Processes that the ranks started live on.

    Errors: SpawnError, usage (fewer ranks than 1; a function or an argument that cannot be pickled,
        such as a lambda).
    Cost: a new interpreter for each rank.
    """
    if ranks < 1:
        raise Error(f"spawn cannot start {ranks} ranks: pass 1 or more", "usage")
    return start_ranks(function, arguments, [{}] * ranks)


def start_ranks(function: Callable[..., Result], arguments: tuple[Any, ...],
                environments: Sequence[dict[str, str]], imports_main: bool = True,
                executable: str | None = None) -> list[Result]:
    """As `spawn`, with further environment variables for each rank. Without `imports_main`, the ranks do
    not import the main module. `executable`: a Python other than this one."""
    ranks = len(environments)
    context = multiprocessing.get_context("spawn")
    with _reserve_port() as torch_reservation, _reserve_port() as peal_reservation:
        common = {
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "HOROVOD_SIZE": str(ranks),
            "HOROVOD_LOCAL_SIZE": str(ranks),
            "HOROVOD_CROSS_RANK": "0",
            "HOROVOD_CROSS_SIZE": "1",
            "HOROVOD_HOSTNAME": "localhost",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(torch_reservation.getsockname()[1]),
            "PEAL_MASTER_PORT": str(peal_reservation.getsockname()[1]),
            "PEAL_JOB": secrets.token_hex(8),  # differs from the job of this process
            "PEAL_SECRET": os.environ.get("PEAL_SECRET") or secrets.token_hex(32),
        }
        started: list[tuple[BaseProcess, Connection]] = []
        try:
            for rank in range(ranks):
                here, there = context.Pipe(duplex=False)
                of_the_rank = ("RANK", "LOCAL_RANK", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK")
                own = {**common, **dict.fromkeys(of_the_rank, str(rank)),
                       **environments[rank]}
                process: BaseProcess = context.Process(
                    target=_run, args=(there, own, function, arguments))
                with _main_module(imports_main), _executable(executable):
                    _start(process)
                there.close()
                started.append((process, here))
            outcomes = _outcomes(started)
            _let_end([process for process, _ in started])
            return _results(outcomes)
        finally:  # processes that still run are late, or spawn has failed
            for process, here in started:
                if process.is_alive():
                    process.kill()
                process.join()
                here.close()


@contextlib.contextmanager
def _main_module(is_imported: bool) -> Iterator[None]:
    """Whether processes that multiprocessing starts in this block import the main module first."""
    main = sys.modules["__main__"]
    if not is_imported:
        sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _executable(path: str | None) -> Iterator[None]:
    """The Python of processes that multiprocessing starts in this block."""
    before = multiprocessing.spawn.get_executable()
    if path is not None:
        multiprocessing.spawn.set_executable(path)
    try:
        yield
    finally:
        multiprocessing.spawn.set_executable(before)


def _start(process: BaseProcess) -> None:
    """Starts the process. Python pickles the arguments first, so an error leaves no process. A
    RuntimeError passes through, because its text is clear: the main module is not guarded, or a tensor
    requires a gradient."""
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError, ValueError) as error:
        raise Error(
            f"spawn cannot hand its function and arguments to a new process: {words_of(error)}. Pass "
            "a function from the top level of a module, not a lambda or an inner function",
            "usage") from error


def _reserve_port() -> socket.socket:
    """Reserves a free port for rank 0's server until the returned socket is closed. Until then, the
    system does not give the port to a process that binds port 0. Rank 0's server can listen on the
    port, because torch's store and peal's store set SO_REUSEADDR."""
    reservation = socket.socket()
    try:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
    except BaseException:
        reservation.close()
        raise
    return reservation


@dataclass
class _Outcome:
    """How a rank ended. Its result or exception is pickled inside, because unpickling it may fail."""

    pickled: bytes  # the result or exception; empty if it cannot be pickled
    raised: str = ""  # the exception's text
    traceback: str = ""
    kind: Kind = "peer_lost"  # of the SpawnError, if this is the first failure
    follows: bool = False  # whether the failure of another rank caused this one

    def opened(self) -> tuple[Any, BaseException | None]:
        """The result and the exception."""
        try:
            value = pickle.loads(self.pickled)
        except Exception as error:
            return None, RuntimeError(
                self.raised or f"the result cannot be unpickled: {words_of(error)}")
        return (None, value) if self.raised else (value, None)


def _run(there: Connection, environment: dict[str, str], function: Callable[..., Any],
         arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    _keep_from_children(there)
    _end_with_parent()
    there.send(_BEGUN)
    try:
        there.send(_Outcome(pickle.dumps(_returned(function, arguments))))
    except BaseException as error:
        there.send(_Outcome(_pickled_if_possible(error), words_of(error), traceback.format_exc(),
                            _kind_of(error), _follows(error)))
        raise SystemExit(1) from error


def _keep_from_children(there: Connection) -> None:
    """Closes the connection in children, so that it ends with this process."""
    os.set_inheritable(there.fileno(), False)
    os.register_at_fork(after_in_child=there.close)


def _kind_of(error: BaseException) -> Kind:
    if isinstance(error, Facts):
        return error.kind
    return "resource" if isinstance(error, (MemoryError, OSError)) else "aborted"


def _follows(error: BaseException | None) -> bool:
    """Whether the loss of another rank caused the exception, or was handled when it was raised."""
    seen: set[int] = set()  # an exception may be its own cause
    while error is not None and id(error) not in seen:
        if isinstance(error, Facts) and error.kind in ("peer_lost", "aborted"):
            return str(error.rank) != os.environ.get("RANK")
        seen.add(id(error))
        error = error.__context__ if error.__cause__ is None else error.__cause__
    return False


def _returned(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except SystemExit as end:
        if end.code in (None, 0):
            return None
        raise


def _end_with_parent() -> None:
    """The kernel kills this process at the end of its parent, for any cause of that end."""
    set_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    ctypes.CDLL(None).prctl(set_death_signal, int(signal.SIGKILL))
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:  # the parent ended before prctl
        os.kill(os.getpid(), signal.SIGKILL)


def _pickled_if_possible(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:
        return b""


def _outcomes(started: list[tuple[BaseProcess, Connection]]) -> dict[int, _Outcome]:
    """The outcomes by rank, in the order of arrival."""
    outcomes: dict[int, _Outcome] = {}
    begun: set[int] = set()
    waiting = {here: rank for rank, (_, here) in enumerate(started)}
    end: float | None = None
    while waiting:
        ready = wait(list(waiting), None if end is None else max(0.0, end - time.monotonic()))
        if not ready:
            for rank in waiting.values():
                started[rank][0].kill()
                text = (f"the rank was killed, because it still ran {_GRACE_S:.0f} s after another rank "
                        "failed")
                outcomes[rank] = _Outcome(b"", text, kind="aborted", follows=True)
            return outcomes
        for here in ready:
            assert isinstance(here, Connection)
            rank = waiting[here]
            try:
                received = here.recv()
            except (EOFError, OSError):  # no message, or an incomplete one
                process = started[rank][0]
                process.join()
                assert process.exitcode is not None
                text = _without_outcome(process.exitcode, rank in begun)
                received = _Outcome(b"", text)
            if received == _BEGUN:
                begun.add(rank)
                continue
            del waiting[here]
            outcomes[rank] = received
            if outcomes[rank].raised and end is None:
                end = time.monotonic() + _GRACE_S
    return outcomes


def _without_outcome(exitcode: int, has_begun: bool) -> str:
    ended = f"its process {_core.describe_end(exitcode)}"
    if has_begun:
        return f"{ended}, and its function neither returned nor raised"
    return (f"{ended} before it called the function: its stderr says why. Each rank imports the main "
            "module first, so a script must call peal.spawn under `if __name__ == \"__main__\":`")


def _let_end(processes: Sequence[BaseProcess]) -> None:
    end = time.monotonic() + _END_S
    # Does not use join, because it would also wait for children of the processes.
    while any(process.exitcode is None for process in processes) and time.monotonic() < end:
        time.sleep(0.01)


def _results(outcomes: dict[int, _Outcome]) -> list[Any]:
    results: list[Any] = [None] * len(outcomes)
    errors: list[BaseException | None] = [None] * len(outcomes)
    for rank, outcome in outcomes.items():
        results[rank], errors[rank] = outcome.opened()
    failed = [rank for rank in outcomes if errors[rank] is not None]
    if failed:
        # A rank that raises in a group notifies its peers before it sends its outcome here.
        first = min(failed, key=lambda rank: outcomes[rank].follows)
        cause = errors[first]
        assert cause is not None
        error = SpawnError(
            f"rank {first} of {len(outcomes)} failed first: "
            f"{outcomes[first].raised or words_of(cause)}\n{outcomes[first].traceback}".rstrip(),
            outcomes[first].kind if outcomes[first].raised else "usage", errors)
        error.rank = first
        raise error from cause
    return results
