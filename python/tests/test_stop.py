"""peal.should_stop: all ranks end after the same step. The example train_until_sigterm.py has the rest."""

from __future__ import annotations

import re
import sys
import tempfile
import unittest
from pathlib import Path

from programs import output_of

TRAIN = """
import os, signal, peal
with peal.init_process_group() as group:
    step = 0
    while not peal.should_stop(group):
        group.all_reduce(bytearray(8))
        step += 1
        if step == 5 and os.environ.get("SIGNALLED") == str(group.rank):
            os.kill(os.getpid(), signal.SIGTERM)
    assert group.should_stop()
    print(f"rank {group.rank} ends after step {step}")
"""
END_A_CHILD = """
import os, signal, peal
assert not peal.stop_requested()
child = os.fork()
if child == 0:
    signal.pause()
os.kill(child, signal.SIGTERM)
assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
assert not peal.stop_requested()
os.kill(os.getpid(), signal.SIGTERM)
assert peal.stop_requested()
print("done")
"""


def run(script: str, *options: str, **environment: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(script)
        return output_of(sys.executable, "-m", "peal", "run", *options, sys.executable, path, **environment)


class ShouldStopTest(unittest.TestCase):
    def steps(self, text: str) -> list[int]:
        return [int(step) for step in re.findall(r"rank \d ends after step (\d+)", text)]

    def test_all_ranks_end_after_the_step_in_which_one_was_signalled(self) -> None:
        for rank in ("0", "2"):
            self.assertEqual(self.steps(run(TRAIN, "-n", "3", SIGNALLED=rank)), [5, 5, 5])

    def test_all_ranks_end_after_the_same_step_when_the_launcher_warns_them(self) -> None:
        steps = self.steps(run(TRAIN, "-n", "3", "--timeout", "3600", "--warn-before", "3599"))
        self.assertEqual((len(steps), len(set(steps))), (3, 1), steps)

    def test_sigterm_still_ends_forked_children(self) -> None:
        self.assertIn("done", run(END_A_CHILD, "-n", "1"))

    def test_without_torch_a_group_is_needed(self) -> None:
        text = run("import peal\ntry: peal.should_stop()\nexcept peal.Error as e: print(e.kind, e)", "-n", "1")
        self.assertIn("should_stop needs a group", text)

    def test_a_handler_of_the_program_keeps_its_signal(self) -> None:
        script = "\n".join(("import os, signal, peal", "seen = []",
                            "signal.signal(signal.SIGTERM, lambda *_: seen.append(1))",
                            "assert not peal.stop_requested()", "os.kill(os.getpid(), signal.SIGTERM)",
                            "assert seen and not peal.stop_requested()", "print('done')"))
        self.assertIn("done", run(script, "-n", "1"))


if __name__ == "__main__":
    unittest.main()
