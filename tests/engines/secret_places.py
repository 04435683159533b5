"""Where other users, or readers of logs, could see a secret of a job: command lines, files, and what engines show. The
tests of all runners look here.

    with CommandLines() as lines:
        ...    # a job starts and runs
        assert_unseen(test, secrets, lines, ["srun"], folders=[jobs], texts={"scontrol show job": shown})
"""
import os
import pathlib
import re
import stat
import threading

PAUSE = 0.02  # seconds between two looks at all processes


class CommandLines:
    """While it is open, notes the command lines of all processes of this machine, also of short-lived ones."""

    def __enter__(self):
        self.seen = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._end.set()
        self._thread.join()

    def _look(self):
        while True:
            self.seen.update(filter(None, map(command_line, os.listdir("/proc"))))
            if self._end.wait(PAUSE):
                return


def command_line(pid):
    """Empty if this is not the number of a process that runs."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() if pid.isdigit() else b""
    except OSError:
        return b""


def secrets_of(environments):
    """The secrets of jobs, from the environments of their ranks, as /proc shows them."""
    return {secret for text in environments for secret in re.findall(rb"(?:\A|\0)PEAL_SECRET=([^\0]+)", text)}


def others_may_read(path, top):
    """Whether other users can read the file, if they can enter the folder `top`."""
    above = [folder for folder in path.parents if top in folder.parents]
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)) and all(
        folder.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH) for folder in above)


def files_with(text, folders, counts=lambda path, top: True):
    found = []
    for top in map(pathlib.Path, folders):
        for path in top.rglob("*"):
            try:
                if path.is_file() and not path.is_symlink() and text in path.read_bytes() and counts(path, top):
                    found.append(str(path))
            except FileNotFoundError:
                pass  # the job has removed it
    return found


def assert_unseen(test, secrets, lines, programs, folders=(), texts=None, private=()):
    """`secrets`: bytes that must be in no command line, no file below the folders, and none of the texts (a dict).
    `private`: the same, but files that only the user can read may contain them. `programs`: `lines` must have seen
    command lines of these programs, which proves that it looked in time."""
    seen = set(lines.seen)
    for program in programs:
        test.assertTrue([line for line in seen if program.encode() in line], f"no command line of {program} was seen")
    for secret in {*secrets, *private}:
        test.assertGreater(len(secret), 7)  # a shorter text may be anywhere by chance
        test.assertEqual([line for line in seen if secret in line], [])
        test.assertEqual([name for name, text in (texts or {}).items() if secret.decode() in text], [])
    for secret in secrets:
        test.assertEqual(files_with(secret, folders), [])
    for value in private:
        test.assertEqual(files_with(value, folders, others_may_read), [])
