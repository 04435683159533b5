"""Makes docs/guide/horovod_reference.md from the results of python/tests/test_horovod_grid.py. To write it:

    PEAL_TEST_ACCEPT=1 python python/tests/test_horovod_grid.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Mapping, Protocol

OUTPUT = Path(__file__).parent / "guide/horovod_reference.md"

_BEGIN = """# What works in peal.horovod

The test `python/tests/test_horovod_grid.py` writes this page from its results. Each case is one function, one type, one operator and one form. Each case ran on one to four ranks, and the test compared its results with formulas. [From Horovod](horovod.md) explains the functions.

| a cell | means |
|---|---|
| yes | all ranks got the result of the formula. Forms in place put it into the memory of the argument. Other forms did not change the argument |
| ValueError | the call was refused, on the rank that called |
| HorovodMismatchError | the operation was refused because ranks have joined |
| - | the function does not have this form, as in Horovod |

| a form | the call |
|---|---|
| blocking | `hvd.allreduce(x)` |
| async | `hvd.synchronize(hvd.allreduce_async(x))`; for `sparse_allreduce`, `hvd.sparse_allreduce_async(x, name, op)()` |
| in place; in place, async | `hvd.allreduce_(x)`; `hvd.synchronize(hvd.allreduce_async_(x))` |
| process set | blocking, with a `process_set` of every second rank, on two to four ranks |
| joined | blocking, on one rank, while all other ranks are in `hvd.join()` |
| joined, all allowed | the same after `hvd.init(while_joined="all")` |
"""


class Case(Protocol):
    """A case of the grid."""

    @property
    def function(self) -> str: ...

    @property
    def type_name(self) -> str: ...

    @property
    def operator_name(self) -> str: ...

    @property
    def form(self) -> str: ...


Cells = tuple[str, ...]  # an outcome for each form


def page(outcomes: Mapping[Case, str]) -> str:
    forms = list(dict.fromkeys(case.form for case in outcomes))
    functions = list(dict.fromkeys(case.function for case in outcomes))
    parts = [_BEGIN]
    for function in functions:
        own = {case: outcome for case, outcome in outcomes.items() if case.function == function}
        parts.append(f"## {function}\n" + "\n".join(_table(own, forms)) + "\n")
    return "\n".join(parts)


def _table(outcomes: Mapping[Case, str], forms: list[str]) -> Iterator[str]:
    """Operators and types with the same outcomes share a row."""
    rows: dict[str, dict[str, list[str]]] = {}  # by operator, by type: an outcome for each form
    for case, outcome in outcomes.items():
        rows.setdefault(case.operator_name, {}).setdefault(case.type_name, []).append(outcome)
    groups: dict[tuple[tuple[str, Cells], ...], list[str]] = {}  # the operators with these rows
    for operator, by_type in rows.items():
        types: dict[Cells, list[str]] = {}
        for name, cells in by_type.items():
            types.setdefault(tuple(cells), []).append(name)
        key = tuple((", ".join(names), cells) for cells, names in types.items())
        groups.setdefault(key, []).append(operator)
    has_operators = list(rows) != [""]
    yield _row([*(["operator"] if has_operators else []), "types", *forms])
    yield "|" + "---|" * (len(forms) + 1 + has_operators)
    for key, operators in groups.items():
        for names, cells in key:
            yield _row([*([", ".join(operators)] if has_operators else []), names, *cells])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
