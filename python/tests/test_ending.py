"""What the peers of a process hear when it ends, in whatever way it was started."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# The first process is rank 0 and shows what it hears of rank 1, which it starts while it handles an
# exception of its own.
SCRIPT = '''
import multiprocessing, subprocess, sys
import peal

class Speechless(Exception):
    def __str__(self):
        raise KeyError("no words")

def end(what):
    if what == "raise":
        raise ValueError("out of luck")
    if what == "raise without words":
        raise Speechless()
    if what == "exit with 3":
        sys.exit(3)

def join(folder, rank):
    return peal.init_process_group(f"file://{folder}/store", rank=rank, world_size=2)

def rank_1(folder, what):
    global group  # so that it is there until the end
    group = join(folder, 1)
    end(what)

def rank_0(folder):
    try:
        join(folder, 0).barrier()
    except peal.Error as error:
        print(error)

if __name__ == "__main__":
    folder, how, what = sys.argv[1:]
    if how == "as rank 1":
        rank_1(folder, what)
        sys.exit()
    try:
        raise LookupError("of the parent")
    except LookupError:
        if how == "a program":
            other = subprocess.Popen([sys.executable, __file__, folder, "as rank 1", what])
        else:
            other = multiprocessing.get_context(how).Process(target=rank_1, args=(folder, what))
            other.start()
    rank_0(folder)
    if how == "a program":
        other.wait()
    else:
        other.join()
'''


class EndingTest(unittest.TestCase):
    def heard(self, how: str, what: str) -> tuple[str, str]:
        """What rank 0 hears, and what both write on stderr."""
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "script.py")
            script.write_text(SCRIPT)
            run = subprocess.run([sys.executable, str(script), folder, how, what],
                                 capture_output=True, text=True, timeout=120)
            self.assertEqual(run.returncode, 0, run.stderr)
            return run.stdout, run.stderr

    def on_each(self, what: str, words: str, written: str = "") -> None:
        for how in ("a program", "fork", "forkserver", "spawn"):
            with self.subTest(how):
                text, errors = self.heard(how, what)
                self.assertIn(words, text)
                self.assertNotIn("of the parent", text)
                self.assertIn(written, errors)
                if not written:
                    self.assertEqual(errors, "")

    def test_one_that_ends_has_left_its_groups(self) -> None:
        self.on_each("end", "has left the group")

    def test_one_that_exits_has_left_its_groups(self) -> None:
        self.on_each("exit with 3", "has left the group")

    def test_what_ends_it_is_told(self) -> None:
        self.on_each("raise", "rank 1 threw: ValueError: out of luck", "ValueError: out of luck")

    def test_what_ends_it_is_told_and_shown_even_if_it_has_no_words(self) -> None:
        self.on_each("raise without words", "rank 1 threw: Speechless", "Speechless")


if __name__ == "__main__":
    unittest.main()
