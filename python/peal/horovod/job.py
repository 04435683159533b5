"""The start and the end of a job, and the place of this rank in it."""

from __future__ import annotations

import os
import runpy
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Sequence

from peal.horovod import assignment
from peal.horovod import process_sets as _sets
from peal.horovod._binding import hvd
from peal.horovod.exceptions import HorovodInternalError
from peal.horovod.process_sets import ProcessSet

WhileJoined = Literal["allreduce", "all"]


@dataclass(frozen=True)
class _Arguments:
    """The arguments of `init`."""

    ranks: list[int] | None = None
    sets: tuple[ProcessSet, ...] = ()
    is_dynamic: bool = False
    while_joined: WhileJoined = "allreduce"


_last = _Arguments()


def init(comm: Any = None, process_sets: Sequence[ProcessSet] | str | None = None, *,
         while_joined: WhileJoined = "allreduce") -> None:
    """Joins the job that the launcher started: `peal run`, `horovodrun`, torchrun, mpirun or srun. Without
    a launcher, the job is this one process. Reads the environment variables HOROVOD_*.

    comm: the ranks that take part, as a list; None for all. process_sets: sets to register, or "dynamic"
    for `add_process_set` later. while_joined: the operations that may run while ranks are in `join`: "allreduce"
    only, or "all"; joined ranks then contribute no rows. Must be the same on all ranks. A second call does
    nothing.

    Errors: ValueError (the job cannot start; an mpi4py communicator, since peal is not built on MPI).
    """
    if hvd.is_initialized():
        return
    if while_joined not in ("allreduce", "all"):
        raise ValueError(f'Invalid value for while_joined: {while_joined!r}. Pass "allreduce" or "all"')
    sets, is_dynamic = _split_sets(process_sets)
    arguments = _Arguments(_ranks_of(comm), tuple(sets), is_dynamic, while_joined)
    try:
        assignment.next_round()
        _start(arguments, arguments.sets)
    except HorovodInternalError as error:
        raise ValueError(f"Horovod initialization failed: {error}") from error


def _split_sets(process_sets: Sequence[ProcessSet] | str | None) -> tuple[list[ProcessSet], bool]:
    if process_sets is None:
        return [], False
    if isinstance(process_sets, str):
        if process_sets.lower() != "dynamic":
            raise ValueError(f"Invalid value for process_sets: {process_sets!r}. Pass \"dynamic\" or a list "
                             "of process sets")
        return [], True
    return [one if isinstance(one, ProcessSet) else ProcessSet(one) for one in process_sets], False


def _ranks_of(comm: Any) -> list[int] | None:
    if comm is None or (isinstance(comm, (list, tuple, range)) and not comm):
        return None
    return ProcessSet(comm).ranks


def _start(arguments: _Arguments, sets: Sequence[ProcessSet]) -> None:
    """`sets`: the process sets of `arguments` that still exist."""
    global _last
    ranks_of_sets = []
    for one in sets:
        if one.ranks is None:
            raise ValueError(f"{one} was removed: make a new ProcessSet")
        ranks_of_sets.append(one.ranks)
    hvd.init(ranks=arguments.ranks, process_sets=ranks_of_sets, dynamic=arguments.is_dynamic,
             all_while_joined=arguments.while_joined == "all", whereabouts=whereabouts)
    _last = arguments
    _sets.register_all(sets)


def start_again(ranks: int | None) -> None:
    """Calls init with its last arguments, after an elastic reset. `ranks`: the new number of ranks, if
    known. Leaves out sets of which a rank no longer exists."""
    sets = [one for one in _last.sets if one.ranks is not None]
    _start(_last, sets if ranks is None else _sets.remaining(sets, ranks))


def shutdown() -> None:
    """Leaves the job. Operations in flight fail on all ranks, also those for which other threads wait. Then
    `init` may be called again."""
    hvd.shutdown()
    _sets.forget_all()


# ---- for the stall report

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_RUNPY = {"<frozen runpy>", runpy.__file__}


def whereabouts() -> str:
    """What the program of this rank is doing, for the stall reports of other ranks: the innermost calls of the
    main thread, without those inside of peal."""
    main = threading.main_thread().ident
    frame = None if main is None else sys._current_frames().get(main)
    calls = []
    for call, line in traceback.walk_stack(frame) if frame is not None else ():
        code = call.f_code
        if not code.co_filename.startswith(_PACKAGE) and code.co_filename not in _RUNPY:
            calls.append(f"{code.co_name} ({code.co_filename}:{line})")
    return " > ".join(reversed(calls[:3]))


# ---- the place of this rank

is_initialized = hvd.is_initialized
rank = hvd.rank
size = hvd.size
local_rank = hvd.local_rank
local_size = hvd.local_size
cross_rank = hvd.cross_rank
cross_size = hvd.cross_size
is_homogeneous = hvd.is_homogeneous


# ---- the timeline


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Writes what happens to each operation to a file for chrome://tracing or Perfetto. The file is
    complete at every moment.

    Errors: ValueError without HOROVOD_TIMELINE at init (DYNAMIC, or a path), and for a file that cannot be
    written.
    """
    hvd.start_timeline(str(file_path), mark_cycles)


stop_timeline = hvd.stop_timeline
