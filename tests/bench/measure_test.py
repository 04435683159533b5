"""bench/measure does not begin where it could not fill the columns of docs/performance.md.

Called by ctest with the script.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
# In place of `peal`: remembers how it was called, and has no gloo.
PEAL = """#!/bin/sh
echo "$@" >> calls
case "$*" in *gloo*) echo "  gloo: left out: python3 has no torch" >&2 ;; esac
"""


class Measure(unittest.TestCase):
    def measure(self, *parts):
        """(exit code, stderr, how peal was called)"""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for inner in ("bench", "docs/performance"):
                (folder / inner).mkdir(parents=True)
            shutil.copy(SCRIPT, folder / "bench/measure")
            (folder / "docs/performance.md").write_text("")
            (folder / "bench/tables.py").write_text("")
            peal = folder / "peal"
            peal.write_text(PEAL)
            peal.chmod(0o700)
            done = subprocess.run([folder / "bench/measure", *parts], env={**os.environ, "PEAL": str(peal)},
                                  text=True, capture_output=True)
            return done.returncode, done.stderr, (folder / "calls").read_text().splitlines()

    def test_refuses_before_measuring_where_a_peer_of_its_tables_is_missing(self):
        for parts in ([], ["ranks"], ["types", "all_reduce"]):
            code, err, calls = self.measure(*parts)
            self.assertEqual(code, 1)
            self.assertIn("gloo: left out: python3 has no torch", err)
            self.assertEqual(len(calls), 1, calls)
            self.assertNotIn("--json", calls[0])

    def test_measures_a_part_that_needs_no_such_peer(self):
        code, err, calls = self.measure("operations", "types")
        self.assertEqual(code, 0, err)
        self.assertEqual(sum("--json" in call for call in calls), 5, calls)


if __name__ == "__main__":
    unittest.main()
