"""Runs every operation of torch.distributed in every form, for every type and op, on groups of 1 to 4
ranks. The results must equal the closed form, and gloo's results if gloo supports the case."""

from __future__ import annotations

import sys
import unittest
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from needs import import_torch

import_torch()

import torch
import torch.distributed as dist

import operations
from operations import CASES, MOVED_TYPES, OPS, REDUCED_TYPES, Case
from ranks import results

RANKS = 4
GLOO_LACKS = 495  # combinations of form, type and op that gloo fails at some rank or size; see TABLE
TABLE = Path(__file__).parents[2] / "docs" / "guide" / "python_operations.md"


def variants(case: Case) -> list[tuple[torch.dtype, str]]:
    """The meaningful types and ops of a form."""
    if case.operation == "barrier":
        return [(torch.float32, "")]
    if case.form.startswith("sparse"):
        # dist.all_reduce passes a copy of a complex sparse tensor, so the result is lost.
        return [(dtype, "") for dtype in REDUCED_TYPES
                if dtype != torch.bool and not dtype.is_complex]
    if not case.reduces:
        return [(dtype, "") for dtype in MOVED_TYPES]
    return [(dtype, op) for dtype in REDUCED_TYPES for op in OPS
            if operations.has_meaning(op, dtype) and not refused_by_torch(case, op, dtype)
            and not (op == "AVG" and case.form == "several tensors on each rank")]


def refused_by_torch(case: Case, op: str, dtype: torch.dtype) -> bool:
    """Whether torch fails before it calls a backend, or calls another operation than was meant."""
    if case.form == "functional":  # has no name for PREMUL_SUM
        return op == "PREMUL_SUM" or dtype.is_complex and op == "PRODUCT"
    return case.operation == "all_reduce" and dtype.is_complex and op in ("PRODUCT", "PREMUL_SUM")


def wrong_in_gloo(case: Case, dtype: torch.dtype, op: str) -> bool:
    """Whether gloo gives a wrong result without an error."""
    return case.form.startswith("strided") or (op, dtype) == ("SUM", torch.bool)


def name_of(case: Case, size: int, dtype: torch.dtype, op: str) -> str:
    return f"{case.operation} ({case.form}) of {dtype}{' by ' + op if op else ''} on {size} ranks"


def same(ours: list[torch.Tensor], expected: list[torch.Tensor], op: str) -> bool:
    """Compares bits. Averages of floating numbers may be rounded in two ways."""
    def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
        if op == "AVG" and (a.dtype.is_floating_point or a.dtype.is_complex):
            return torch.allclose(a, b, rtol=torch.finfo(a.dtype).eps, atol=0)
        return torch.equal(_bits(a), _bits(b))

    return len(ours) == len(expected) and all(
        a.dtype == b.dtype and a.shape == b.shape and equal(a, b) for a, b in zip(ours, expected))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, because torch cannot compare all types."""
    return tensor.contiguous().view(torch.uint8) if tensor.numel() else tensor.to(torch.float32)


@dataclass
class Seen:
    """The results of all ranks. A case is (index in CASES, type, op)."""

    tried: list[tuple[int, torch.dtype, str]] = field(default_factory=list)  # all cases
    gloo: list[tuple[int, torch.dtype, str]] = field(default_factory=list)  # cases right on gloo too
    wrong: list[str] = field(default_factory=list)  # failures of peal
    other: list[str] = field(default_factory=list)  # unexpected wrong results of gloo


def grid(size: int) -> dict[str, list[Any]]:
    """Runs on each rank; the last `size` ranks are in the group. Returns the fields of Seen."""
    first = dist.get_world_size() - size
    members = list(range(first, first + size))
    ours = dist.new_group(members, backend="peal")
    theirs = dist.new_group(members, backend="gloo")
    seen = Seen()
    me = dist.get_rank() - first
    if me < 0:
        return vars(seen)
    for number, case in enumerate(CASES):
        for dtype, op in variants(case):
            name = name_of(case, size, dtype, op)
            seen.tried.append((number, dtype, op))
            expected = case.expected(me, size, dtype, op)
            try:
                got = case.call(ours, me, size, dtype, op)
                if not same(got, expected, op):
                    seen.wrong.append(f"{name}: {got} is not {expected}")
            except Exception as error:
                seen.wrong.append(f"{name}: {type(error).__name__}: {error}")
            try:
                got = case.call(theirs, me, size, dtype, op)
            except Exception:  # gloo does not support the case
                continue
            if same(got, expected, op):
                seen.gloo.append((number, dtype, op))
            elif not wrong_in_gloo(case, dtype, op):
                seen.other.append(f"{name}: {got} is not {expected}")
    return vars(seen)


def lacking_in_gloo(seen: Seen) -> set[tuple[int, torch.dtype, str]]:
    """The cases that gloo fails on some rank or for some size."""
    tried, gloo = Counter(seen.tried), Counter(seen.gloo)
    return {one for one in tried if gloo[one] < tried[one]}


HEAD = """# Operations of torch.distributed on peal

Which operations of torch.distributed work on peal? The tests run each operation, form, type and
reduction on groups of 1 to 4 ranks, and write this page:

```console
$ python python/tests/test_operations.py --write
```

- The column `peal` lists the types and reductions that gave the correct result on
  every rank and for every size.
- The column `gloo` says which of these cases torch's gloo backend supports too.

Types: {moved}. Types that are reduced: the same without {not_reduced}. Reductions, if they have
a meaning for the type: {ops}.

| operation | form | peal | gloo |
|---|---|---|---|
"""


def table(seen: Seen) -> str:
    """docs/guide/python_operations.md."""
    not_reduced = [dtype for dtype in MOVED_TYPES if dtype not in REDUCED_TYPES]
    lines = [HEAD.format(moved=_names(MOVED_TYPES), not_reduced=_names(not_reduced),
                         ops=", ".join(OPS))]
    failed = lacking_in_gloo(seen)
    for number, case in enumerate(CASES):
        every = variants(case)
        lacking = [pair for pair in every if (number, *pair) in failed]
        lines.append(f"| {case.operation} | {case.form} | {_what(case)} | "
                     f"{_share(every, lacking)} |\n")
    return "".join(lines)


def _names(types: list[torch.dtype]) -> str:
    return ", ".join(str(dtype).removeprefix("torch.") for dtype in types)


def _what(case: Case) -> str:
    if case.operation == "barrier":
        return "yes"
    if case.form.startswith("sparse"):
        return "SUM of all real types but bool"
    if not case.reduces:
        return "all types"
    but = " but AVG" if case.form == "several tensors on each rank" else ""
    return f"all types, all reductions{but}"


def _share(every: list[tuple[torch.dtype, str]], lacking: list[tuple[torch.dtype, str]]) -> str:
    """Describes the supported part of `every`: first the reductions that are missing for all types,
    then the types that are missing for all reductions, then single cases."""
    if not lacking:
        return "the same"
    if len(lacking) == len(every):
        return "no"
    left = set(lacking)
    without = []
    for op in OPS:
        of_op = {pair for pair in every if pair[1] == op}
        if of_op and of_op <= left:
            without.append(op)
            left -= of_op
    types = []
    for dtype in MOVED_TYPES:
        of_type = {pair for pair in every if pair[0] == dtype and pair[1] not in without}
        if of_type and of_type <= left:
            types.append(dtype)
            left -= of_type
    if types:
        without.append(_names(types))
    by_op: dict[str, list[torch.dtype]] = {}
    for dtype, op in lacking:
        if (dtype, op) in left:
            by_op.setdefault(op, []).append(dtype)
    without += [f"{op} of {_names(some)}" for op, some in by_op.items()]
    return "without " + ", ".join(without)


def run_grid() -> Seen:
    """The grid on groups of 1 to RANKS."""
    seen = Seen()
    for size in range(1, RANKS + 1):
        for found in results(RANKS, grid, size):
            for name in found:
                getattr(seen, name).extend(found[name])
    return seen


class OperationsTest(unittest.TestCase):
    seen: Seen

    @classmethod
    def setUpClass(cls) -> None:
        cls.seen = run_grid()

    def test_every_form_type_and_op_gives_the_closed_form_on_1_to_4_ranks(self) -> None:
        self.assertEqual(self.seen.wrong, [])
        self.assertEqual(len({number for number, _, _ in self.seen.tried}), len(CASES))

    def test_gloo_gives_the_same_results_in_the_cases_that_it_supports(self) -> None:
        self.assertEqual(self.seen.other, [])
        self.assertEqual(len(lacking_in_gloo(self.seen)), GLOO_LACKS)

    def test_the_table_of_the_docs_is_up_to_date(self) -> None:
        if not TABLE.exists():
            self.skipTest("the docs are not here")
        self.assertEqual(TABLE.read_text(), table(self.seen),
                         "update the table by: python python/tests/test_operations.py --write")


if __name__ == "__main__":
    if "--write" in sys.argv:
        TABLE.write_text(table(run_grid()))
    else:
        unittest.main()
