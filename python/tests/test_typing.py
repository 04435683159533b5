"""``mypy --strict`` checks the package and a program that uses it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import peal

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(peal.__file__).parent.parent


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class TypingTest(unittest.TestCase):
    def check(self, arguments: list[str], folder: str, **variables: str) -> None:
        run = subprocess.run(
            [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / "build/mypy"), *arguments],
            cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_the_package_is_typed_strictly(self) -> None:
        self.check([], str(ROOT))

    def test_users_get_errors_for_wrong_calls_and_only_for_these(self) -> None:
        # mypy finds packages outside Python's folders only by MYPYPATH.
        variables = {} if INSTALLED.name.endswith("-packages") else {"MYPYPATH": str(INSTALLED)}
        with tempfile.TemporaryDirectory() as folder:
            self.check(["--strict", "--follow-imports=silent",
                        str(Path(__file__).with_name("typing_of_users.py"))], folder, **variables)


if __name__ == "__main__":
    unittest.main()
