"""A function on several ranks, each a new process of this machine."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import secrets
import signal
import socket
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from peal._errors import Error, words_of

Result = TypeVar("Result")
if TYPE_CHECKING:  # typing has them from Python 3.11 on
    from typing_extensions import TypeVarTuple, Unpack

    Arguments = TypeVarTuple("Arguments")

_END_S = 10.0  # what ranks are given to end in after the last of them has told how it went
_GRACE_S = 5.0  # and those that are left when one has failed: in a group they hear it in a second
_BEGUN = "begun"  # the first message of a rank: the function is about to be called


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

    When a rank raises, the others hear it from their group; who has not ended 5 seconds later is
    ended. `SpawnError` shows what the first of them raised that had not just lost another, which is
    its `__cause__`, and holds what each did; of what pickles cannot carry, a RuntimeError with its
    words. An exit with 0 is a result of None. When all have told, each has 10 seconds to leave its
    groups and to flush its files. An interrupt ends them all, as does the end of this process; what
    they have started themselves lives on.

    Errors: SpawnError, usage (fewer ranks than 1; a function or an argument that cannot be
        pickled, as a lambda).
    Cost: a new interpreter for each rank.
    """
    if ranks < 1:
        raise Error(f"spawn on {ranks} ranks: it takes 1 or more", "usage")
    context = multiprocessing.get_context("spawn")
    with _reserve_port() as torch_reservation, _reserve_port() as peal_reservation:
        common = {
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(torch_reservation.getsockname()[1]),
            "PEAL_MASTER_PORT": str(peal_reservation.getsockname()[1]),
            "PEAL_JOB": secrets.token_hex(8),  # not that of the launcher of this process
            "PEAL_SECRET": os.environ.get("PEAL_SECRET") or secrets.token_hex(32),
        }
        started: list[tuple[BaseProcess, Connection]] = []
        try:
            for rank in range(ranks):
                here, there = context.Pipe(duplex=False)
                own = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                process: BaseProcess = context.Process(
                    target=_run, args=(there, own, function, arguments))
                _start(process)
                there.close()
                started.append((process, here))
            outcomes = _outcomes(started)
            _let_end([process for process, _ in started])
            return _results(outcomes)
        finally:  # who is left is late, or nobody waits for it any more
            for process, here in started:
                if process.is_alive():
                    process.kill()
                process.join()
                here.close()


def _start(process: BaseProcess) -> None:
    """Pickles are made before there is a process. (A RuntimeError says what it is about: that a main
    module is not guarded, or that a tensor has a gradient to come.)"""
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError, ValueError) as error:
        raise Error(
            f"spawn cannot hand its function and arguments to a new process: {words_of(error)}; of "
            "functions those at the top level of a module can be handed on, and no lambda nor one "
            "that is defined in another function", "usage") from error


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
    """How a rank ended, as it tells it: what any pickle carries, with what may not come through one
    within."""

    pickled: bytes  # what it returned or raised; empty if that cannot be pickled
    raised: str = ""  # in short
    traceback: str = ""
    follows: bool = False  # from how another one ended

    def opened(self) -> tuple[Any, BaseException | None]:
        """What it returned, and what it raised."""
        try:
            value = pickle.loads(self.pickled)
        except Exception as error:
            return None, RuntimeError(
                self.raised or f"what it returned cannot be unpickled: {words_of(error)}")
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
                            _follows(error)))
        raise SystemExit(1) from error


def _keep_from_children(there: Connection) -> None:
    """So that it ends when this process does, and not with the last of its children."""
    os.set_inheritable(there.fileno(), False)
    os.register_at_fork(after_in_child=there.close)


def _follows(error: BaseException | None) -> bool:
    """Whether it was raised since a peer was lost, or while that was handled."""
    seen: set[int] = set()  # since an exception may be its own cause
    while error is not None and id(error) not in seen:
        if isinstance(error, Error) and error.kind == "peer_lost":
            return True
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
    """However that ends: the kernel ends this process then."""
    set_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    ctypes.CDLL(None).prctl(set_death_signal, int(signal.SIGKILL))
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:  # before that
        os.kill(os.getpid(), signal.SIGKILL)


def _pickled_if_possible(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:
        return b""


def _outcomes(started: list[tuple[BaseProcess, Connection]]) -> dict[int, _Outcome]:
    """By rank, in the order in which they came."""
    outcomes: dict[int, _Outcome] = {}
    begun: set[int] = set()
    waiting = {here: rank for rank, (_, here) in enumerate(started)}
    end: float | None = None
    while waiting:
        ready = wait(list(waiting), None if end is None else max(0.0, end - time.monotonic()))
        if not ready:
            for rank in waiting.values():
                started[rank][0].kill()
                text = f"it had not ended {_GRACE_S:.0f} s after another failed, and was killed"
                outcomes[rank] = _Outcome(b"", text, follows=True)
            return outcomes
        for here in ready:
            assert isinstance(here, Connection)
            rank = waiting[here]
            try:
                told = here.recv()
            except (EOFError, OSError):  # no message, or a part of one
                process = started[rank][0]
                process.join()
                text = _without_outcome(process.exitcode, rank in begun)
                told = _Outcome(b"", text)
            if told == _BEGUN:
                begun.add(rank)
                continue
            del waiting[here]
            outcomes[rank] = told
            if outcomes[rank].raised and end is None:
                end = time.monotonic() + _GRACE_S
    return outcomes


def _without_outcome(code: int | None, has_begun: bool) -> str:
    ended = f"its process {_way_of_ending(code)}"
    if has_begun:
        return f"{ended}, and its function neither returned nor raised"
    return (f"{ended} before it called the function: its stderr says why. Python has imported the "
            "main module there first: a script calls peal.spawn under "
            "`if __name__ == \"__main__\":`")


def _way_of_ending(code: int | None) -> str:
    if code is not None and code < 0:
        named = -code in signal.Signals.__members__.values()
        return f"was killed by {signal.Signals(-code).name if named else f'signal {-code}'}"
    return f"ended with exit code {code}"


def _let_end(processes: Sequence[BaseProcess]) -> None:
    end = time.monotonic() + _END_S
    # What join waits for is held by a process's children, too.
    while any(process.exitcode is None for process in processes) and time.monotonic() < end:
        time.sleep(0.01)


def _results(outcomes: dict[int, _Outcome]) -> list[Any]:
    results: list[Any] = [None] * len(outcomes)
    errors: list[BaseException | None] = [None] * len(outcomes)
    for rank, outcome in outcomes.items():
        results[rank], errors[rank] = outcome.opened()
    failed = [rank for rank in outcomes if errors[rank] is not None]
    if failed:
        # Who raises within a group tells the peers before it tells this process.
        first = min(failed, key=lambda rank: outcomes[rank].follows)
        cause = errors[first]
        assert cause is not None
        raise SpawnError(
            f"rank {first} of {len(outcomes)} failed first: "
            f"{outcomes[first].raised or words_of(cause)}\n{outcomes[first].traceback}".rstrip(),
            errors) from cause
    return results
