"""Process sets: subsets of the ranks with operations of their own. `horovod.common.process_sets`."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Sequence

from peal.horovod._binding import hvd

_NOT_RANKS = "ProcessSet should be initialized with a list of process ranks or an mpi4py Comm object"
_NO_MPI = ("Horovod has not been built with MPI support: peal starts without MPI. Pass a list of ranks "
           "in place of an mpi4py communicator.")


class ProcessSet:
    """Some of the ranks. Register it by `init(process_sets=[...])` or `add_process_set`, then pass it to
    operations as `process_set`. Roots of operations are global ranks."""

    process_set_id: int | None = None
    ranks: list[int] | None = None
    mpi_comm: Any = None

    def __init__(self, ranks_or_comm: Iterable[int]) -> None:
        self.ranks = _checked_ranks(ranks_or_comm)

    def size(self) -> int | None:
        """The number of ranks, or None before the registration."""
        if self.process_set_id is None or self.ranks is None:
            return None
        return hvd.size() if self.process_set_id == 0 else len(self.ranks)

    def rank(self) -> int | None:
        """The place of this rank in the set, or None before the registration. ValueError on ranks that
        are not in the set."""
        if self.process_set_id is None or self.ranks is None:
            return None
        own = hvd.rank()
        if self.process_set_id == 0:
            return own
        if own not in self.ranks:
            raise ValueError(f"Process set provided to rank() does not include this process: {self}, and "
                             f"this is rank {own}")
        return self.ranks.index(own)

    def included(self) -> bool | None:
        """Whether this rank is in the set, or None if the set has no ranks."""
        if not self.ranks:
            return None
        return hvd.rank() in self.ranks

    def invalidate(self) -> None:
        self.process_set_id = None
        self.ranks = None

    def __str__(self) -> str:
        return (f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, "
                f"mpi_comm={self.mpi_comm})")

    __repr__ = __str__


def _checked_ranks(ranks: Any) -> list[int]:
    try:
        given = list(ranks)
    except TypeError:
        raise ValueError(_NO_MPI if _is_communicator(ranks) else _NOT_RANKS) from None
    if any(not isinstance(rank, int) or isinstance(rank, bool) for rank in given):
        raise ValueError(_NOT_RANKS)
    return sorted(given)


def _is_communicator(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "mpi4py"


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0

# All objects for the set of an id, because two objects may describe one set.
_registered: dict[int, list[ProcessSet]] = {0: [global_process_set]}


def set_id(process_set: ProcessSet) -> int:
    """The id that operations pass on."""
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set must be a ProcessSet, and is {process_set!r}: see hvd.add_process_set()")
    number = process_set.process_set_id
    if number is None:
        raise ValueError(f"{process_set} is not registered: pass it to hvd.init(process_sets=[...]) or to "
                         "hvd.add_process_set()")
    return number


def register_all(process_sets: Sequence[ProcessSet]) -> None:
    """After init: gives `process_sets` and the global set their ids and ranks."""
    known = hvd.process_sets()
    ids = {tuple(ranks): number for number, ranks in known.items()}
    global_process_set.ranks = list(known[0])
    for process_set in process_sets:
        assert process_set.ranks is not None
        number = ids[tuple(process_set.ranks)]
        process_set.process_set_id = number
        if process_set not in _registered.setdefault(number, []):
            _registered[number].append(process_set)


def forget_all() -> None:
    """After shutdown: the sets keep their ranks, and lose their ids."""
    for number, same in list(_registered.items()):
        if number != 0:
            del _registered[number]
            for process_set in same:
                process_set.process_set_id = None


def remaining(process_sets: Sequence[ProcessSet], ranks: int) -> list[ProcessSet]:
    """The sets that still exist with this number of ranks. A warning names the others."""
    kept = [one for one in process_sets if one.ranks and one.ranks[-1] < ranks]
    for one in process_sets:
        if one not in kept:
            warnings.warn(f"{one} has no place among {ranks} ranks, so it is no longer registered")
    return kept


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Registers a set after init, on all ranks in the same order. init needs
    ``process_sets="dynamic"`` or HOROVOD_DYNAMIC_PROCESS_SETS=1. ValueError if a set with these ranks
    exists."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.ranks is None:
        raise ValueError(f"{process_set} was removed: make a new ProcessSet")
    process_set.process_set_id = hvd.add_process_set(process_set.ranks)
    _registered.setdefault(process_set.process_set_id, []).append(process_set)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a set, on all ranks in the same order. False for the global set and for a set that is not
    registered."""
    number = process_set.process_set_id
    if number is None or number == 0 or not hvd.remove_process_set(number):
        return False
    for same in _registered.pop(number, [process_set]):
        same.invalidate()
    return True


def process_set_by_id(process_set_id: int) -> ProcessSet:
    if process_set_id not in _registered:
        raise ValueError(f"No known process set with id {process_set_id}")
    return _registered[process_set_id][0]


def process_sets() -> list[ProcessSet]:
    """All registered sets, by id."""
    return [_registered[number][0] for number in sorted(_registered)]


def process_set_ids() -> list[int]:
    return sorted(_registered)
