"""docs/guide/python_reference.md equals the docstrings of the installed package."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


class ReferenceTest(unittest.TestCase):
    maxDiff = None

    def test_the_reference_equals_the_docstrings(self) -> None:
        sys.path.insert(0, str(DOCS))
        self.addCleanup(sys.path.remove, str(DOCS))
        import python_reference

        text = python_reference.reference()
        if os.environ.get("PEAL_TEST_ACCEPT"):
            python_reference.OUTPUT.write_text(text)
        self.assertEqual(python_reference.OUTPUT.read_text(), text,
                         "update it by: python docs/python_reference.py")

    def test_the_generator_needs_no_torch(self) -> None:
        without = "import sys; sys.modules['torch'] = None; import python_reference as p; "
        run = subprocess.run(
            [sys.executable, "-c", without + "assert p.reference() == p.OUTPUT.read_text()"],
            cwd=DOCS, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
