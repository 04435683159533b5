"""Each function, type, operator and form of peal.horovod on one to four ranks. docs/guide/horovod_reference.md
says what ran here."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path

from needs import import_torch

import_torch()

import horovod_grid
from horovod_grid import Case
from horovod_ranks import results

RANKS = (1, 2, 3, 4)
DOCS = Path(__file__).resolve().parents[2] / "docs"


class GridTest(unittest.TestCase):
    maxDiff = None

    def test_every_case_works_or_is_refused_as_the_reference_says(self) -> None:
        found: dict[Case, set[str]] = {case: set() for case in horovod_grid.cases()}
        wrong = []
        for size in RANKS:
            for rank, outcomes in enumerate(results(size, horovod_grid.run_on_rank)):
                for case, outcome in outcomes.items():
                    found[case].add(outcome)
                    if outcome != horovod_grid.expected(case):
                        wrong.append(f"{case}, rank {rank} of {size}: {outcome}")
        self.assertEqual(wrong[:30], [], f"{len(wrong)} outcomes")
        self.assertEqual([str(case) for case, outcomes in found.items() if len(outcomes) != 1], [])
        sys.path.insert(0, str(DOCS))
        self.addCleanup(sys.path.remove, str(DOCS))
        import horovod_reference

        text = horovod_reference.page({case: outcomes.pop() for case, outcomes in found.items()})
        if os.environ.get("PEAL_TEST_ACCEPT"):
            horovod_reference.OUTPUT.write_text(text)
        self.assertEqual(horovod_reference.OUTPUT.read_text(), text, "run this test with PEAL_TEST_ACCEPT=1")


if __name__ == "__main__":
    unittest.main()
