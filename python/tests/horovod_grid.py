"""The grid of peal.horovod: each function, type, operator and form once, with the formula of its result.
test_horovod_grid.py runs it, and docs/guide/horovod_reference.md shows what ran."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Callable, Iterable, Iterator

import torch
from torch import Tensor

from horovod_values import ADASUM, AVERAGE, DTYPES, MAX, MIN, PRODUCT, SUM, Checks, has_meaning, reduced, share, values

OPERATORS = {AVERAGE: "Average", SUM: "Sum", MIN: "Min", MAX: "Max", PRODUCT: "Product", ADASUM: "Adasum"}
# Types of torch that peal does not have.
OTHER_DTYPES = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.complex32]

# The end of the function's name in each form.
SUFFIXES = {"blocking": "", "async": "_async", "in place": "_", "in place, async": "_async_"}
# The added forms call the blocking function, if it exists. joined: rank 0 calls it while all other ranks are in
# join. all allowed: after init(while_joined="all").
FORMS = [*SUFFIXES, "process set", "joined", "joined, all allowed"]
REDUCTIONS = ["allreduce", "grouped_allreduce", "reducescatter", "grouped_reducescatter", "sparse_allreduce"]
MOVES = ["allgather", "grouped_allgather", "broadcast", "alltoall"]

WORKS = "yes"
MISSING = "-"  # the function does not have this form


@dataclass(frozen=True)
class Case:
    function: str
    dtype: torch.dtype
    operator: int | None  # None: the function does not reduce
    form: str

    @property
    def type_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def operator_name(self) -> str:
        return "" if self.operator is None else OPERATORS[self.operator]

    def __str__(self) -> str:
        return " ".join([self.function, self.type_name, self.operator_name, self.form])


def cases() -> Iterator[Case]:
    for function in [*REDUCTIONS, *MOVES]:
        operators = list(OPERATORS) if function in REDUCTIONS else [None]
        for operator, dtype, form in product(operators, [*DTYPES, *OTHER_DTYPES], FORMS):
            yield Case(function, dtype, operator, form)


def expected(case: Case) -> str:
    """WORKS, MISSING, or the class of the error."""
    has_no_meaning = case.operator is not None and not has_meaning(case.operator, case.dtype)
    if case.form in SUFFIXES and not _name_of(case):
        return MISSING
    if case.dtype in OTHER_DTYPES or has_no_meaning:
        return "ValueError"
    if case.operator == ADASUM and "reducescatter" in case.function:
        return "ValueError"
    if case.function == "sparse_allreduce" and case.operator not in (AVERAGE, SUM):
        return "ValueError"
    if case.form == "joined" and (case.function not in ("allreduce", "grouped_allreduce") or case.operator == ADASUM):
        return "HorovodMismatchError"
    return WORKS


def _name_of(case: Case) -> str:
    """The function to call; nothing if it does not have this form."""
    import peal.horovod as hvd

    suffixes = [SUFFIXES[case.form]] if case.form in SUFFIXES else ["", "_async"]
    return next((case.function + one for one in suffixes if hasattr(hvd, case.function + one)), "")


# ---- the calls and their formulas


@dataclass
class Task:
    """The arguments of a rank, and the expected result."""

    argument: Any
    result: Any
    options: dict[str, Any]


@dataclass(frozen=True)
class Place:
    """This rank and the ranks that take part. `ranks` have data; the others have joined."""

    rank: int
    members: list[int]
    ranks: list[int]

    @property
    def part(self) -> int:
        return self.ranks.index(self.rank)

    def share_of(self, rows: int) -> slice:
        return share(rows, len(self.members), self.members.index(self.rank))


def _reduced(case: Case, place: Place, parts: list[Tensor]) -> Tensor:
    assert case.operator is not None
    if not has_meaning(case.operator, case.dtype):
        return parts[0]  # the call is refused
    if len(parts) == len(place.members) or case.operator != AVERAGE:
        return reduced(parts, case.operator)
    floats = case.dtype.is_floating_point or case.dtype.is_complex
    return torch.div(parts[0], len(place.members), rounding_mode=None if floats else "trunc")


def _allreduce(case: Case, place: Place, shape: tuple[int, ...] = (4, 3)) -> Task:
    parts = [values(r, shape, case.dtype) for r in place.ranks]
    return Task(parts[place.part], _reduced(case, place, parts), {"op": case.operator})


def _reducescatter(case: Case, place: Place, shape: tuple[int, ...] = (5, 3)) -> Task:
    task = _allreduce(case, place, shape)
    task.result = task.result[place.share_of(shape[0])]
    return task


def _sparse_allreduce(case: Case, place: Place) -> Task:
    def part(rank: int) -> Tensor:  # one index occurs twice, and another on all ranks
        return torch.sparse_coo_tensor(torch.tensor([[rank, rank, 6]]), values(rank, (3, 2), case.dtype), (7, 2))

    parts = [part(r) for r in place.ranks]
    dense = [one.coalesce().to_dense() for one in parts]
    return Task(parts[place.part], _reduced(case, place, dense), {"op": case.operator})


def _allgather(case: Case, place: Place, columns: int = 3) -> Task:
    parts = [values(r, (r % 3, columns), case.dtype) for r in place.ranks]
    return Task(parts[place.part], torch.cat(parts), {})


def _broadcast(case: Case, place: Place) -> Task:
    root = place.ranks[-1]
    return Task(values(place.rank, (4, 3), case.dtype), values(root, (4, 3), case.dtype), {"root_rank": root})


def _alltoall(case: Case, place: Place) -> Task:
    def rows(sender: int, receiver: int) -> int:
        return (sender + receiver) % 3

    def sent_by(sender: int) -> Tensor:
        return values(sender, (sum(rows(sender, r) for r in place.members), 2), case.dtype)

    own = place.members.index(place.rank)
    parts = [sent_by(s).split([rows(s, r) for r in place.members])[own] for s in place.ranks]
    counts = [rows(s, place.rank) if s in place.ranks else 0 for s in place.members]
    return Task(sent_by(place.rank), (torch.cat(parts), torch.tensor(counts, dtype=torch.int32)),
                {"splits": [rows(place.rank, r) for r in place.members]})


def _grouped(first: Task, second: Task) -> Task:
    return Task([first.argument, second.argument], [first.result, second.result], first.options)


_TASKS: dict[str, Callable[[Case, Place], Task]] = {
    "allreduce": _allreduce,
    "grouped_allreduce": lambda case, place: _grouped(_allreduce(case, place), _allreduce(case, place, (3,))),
    "reducescatter": _reducescatter,
    "grouped_reducescatter": lambda case, place: _grouped(_reducescatter(case, place),
                                                          _reducescatter(case, place, (2, 2))),
    "sparse_allreduce": _sparse_allreduce,
    "allgather": _allgather,
    "grouped_allgather": lambda case, place: _grouped(_allgather(case, place), _allgather(case, place, 2)),
    "broadcast": _broadcast,
    "alltoall": _alltoall,
}


def _task(case: Case, place: Place) -> Task:
    if case.dtype not in OTHER_DTYPES:
        return _TASKS[case.function](case, place)
    task = _TASKS[case.function](replace(case, dtype=torch.float32), place)
    tensor = torch.empty(len(place.members), 2, dtype=case.dtype)  # torch computes little in these types
    if case.function == "sparse_allreduce":
        tensor = torch.sparse_coo_tensor(torch.zeros(1, len(tensor), dtype=torch.int64), tensor, (7, 2))
    task.argument = [tensor] if "grouped" in case.function else tensor
    task.options.pop("splits", None)
    return task


# ---- a rank


def outcome(case: Case, place: Place, options: dict[str, Any]) -> str:
    """Calls the function: WORKS, MISSING, the class of an error, or what is wrong with the result."""
    import peal.horovod as hvd

    name = _name_of(case)
    if not name:
        return MISSING
    task = _task(case, place)
    given = _copy(task.argument)
    checks = Checks()
    try:
        got = getattr(hvd, name)(given, name=str(case), **task.options, **options)
        if callable(got):
            got = got().to_dense()
        elif "_async" in name:
            got = hvd.synchronize(got)
    except (ValueError, hvd.HorovodInternalError) as error:
        return type(error).__name__
    checks.equal(_flat(got), _flat(task.result), "the result")
    if case.form.startswith("in place"):
        checks.equal([one.data_ptr() for one in _flat(got)], [one.data_ptr() for one in _flat(given)], "the memory")
    elif case.function != "sparse_allreduce":
        checks.equal(_flat(given), _flat(task.argument), "the argument after the call")
    return "; ".join(checks.failures) or WORKS


def _copy(argument: Any) -> Any:
    return [one.clone() for one in argument] if isinstance(argument, list) else argument.clone()


def _flat(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def run_on_rank() -> dict[Case, str]:
    """The outcomes on this rank. While the other ranks are in `join`, only rank 0 has outcomes."""
    import peal.horovod as hvd

    found: dict[Case, str] = {}

    def run(forms: Iterable[str], place: Place, **options: Any) -> None:
        for case in cases():
            if case.form in forms:
                found[case] = outcome(case, place, options)

    size = int(os.environ["WORLD_SIZE"])
    every = list(range(size))
    second = hvd.ProcessSet(every[::2])
    hvd.init(process_sets=[second] if size > 1 else None)
    rank = hvd.rank()
    run(SUFFIXES, Place(rank, every, every))
    if size > 1:
        if second.included():
            run(["process set"], Place(rank, every[::2], every[::2]), process_set=second)
        if rank == 0:
            run(["joined"], Place(rank, every, [0]))
        hvd.join()
        hvd.shutdown()
        hvd.init(while_joined="all")
        if rank == 0:
            run(["joined, all allowed"], Place(rank, every, [0]))
        hvd.join()
    return found
