"""bench/measure does not start if it cannot fill the columns of docs/performance.md.

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
# Replaces `peal`: records its arguments, and runs this command if they contain gloo.
PEAL = """#!/bin/sh
echo "$@" >> calls
case "$*" in *gloo*) {gloo} ;; esac
"""
MISSING = 'echo "  gloo: left out: python3 has no torch" >&2'
BROKEN = 'echo "peal: gloo: rank 0 ended with exit code 1; it wrote: no libcudart" >&2; exit 1'


class Measure(unittest.TestCase):
    def measure(self, *parts, gloo=MISSING):
        """Returns (exit code, stderr, the calls of peal)."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for inner in ("bench", "docs/performance"):
                (folder / inner).mkdir(parents=True)
            shutil.copy(SCRIPT, folder / "bench/measure")
            (folder / "docs/performance.md").write_text("")
            (folder / "bench/tables.py").write_text("")
            peal = folder / "peal"
            peal.write_text(PEAL.format(gloo=gloo))
            peal.chmod(0o700)
            (folder / "calls").touch()
            done = subprocess.run([folder / "bench/measure", *parts], env={**os.environ, "PEAL": str(peal)},
                                  text=True, capture_output=True)
            return done.returncode, done.stderr, (folder / "calls").read_text().splitlines()

    def test_fails_before_measuring_if_a_peer_of_its_tables_is_missing_or_broken(self):
        for gloo, said in ((MISSING, "gloo: left out: python3 has no torch"), (BROKEN, "it wrote: no libcudart")):
            for parts in ([], ["ranks"], ["types", "all_reduce"]):
                with self.subTest(said, parts=parts):
                    code, err, calls = self.measure(*parts, gloo=gloo)
                    self.assertEqual(code, 1)
                    self.assertIn(said, err)
                    self.assertEqual(len(calls), 1, calls)
                    self.assertNotIn("--json", calls[0])

    def test_fails_before_measuring_if_a_part_has_a_wrong_name(self):
        for wrong in ("opertions", "ranks types", ""):
            with self.subTest(wrong):
                code, err, calls = self.measure("operations", wrong)
                self.assertEqual(code, 2)
                self.assertIn(f'"{wrong}" is not a part, only all_reduce operations ', err)
                self.assertEqual(calls, [])

    def test_measures_a_part_that_does_not_need_the_peer(self):
        code, err, calls = self.measure("operations", "types")
        self.assertEqual(code, 0, err)
        self.assertEqual(sum("--json" in call for call in calls), 5, calls)


if __name__ == "__main__":
    unittest.main()
