"""secret_places.py finds a secret wherever it can be seen."""
import pathlib
import subprocess
import tempfile
import unittest

from secret_places import CommandLines, assert_unseen, secrets_of
from world import wait_until

SECRET = b"0123-a-secret-of-the-test"


class SecretPlaces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        with CommandLines() as self.lines:
            pass

    def write(self, name, mode, folder_mode=0o755):
        path = self.folder / "below" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"token=" + SECRET)
        path.chmod(mode)
        path.parent.chmod(folder_mode)

    def assert_seen(self, **places):
        with self.assertRaises(AssertionError):
            assert_unseen(self, **{"lines": self.lines, "secrets": [], "programs": [], **places})

    def test_a_command_line(self):
        with CommandLines() as lines, subprocess.Popen(["cat", "-", SECRET], stdin=subprocess.PIPE,
                                                    stderr=subprocess.DEVNULL):
            wait_until(lambda: any(SECRET in line for line in lines.seen.copy()), "seen: the command line")
        self.assert_seen(secrets=[SECRET], lines=lines)

    def test_a_program_that_was_not_seen(self):
        self.assert_seen(programs=["no such program"])

    def test_a_text(self):
        self.assert_seen(secrets=[SECRET], texts={"what": f"x{SECRET.decode()}y"})

    def test_any_file(self):
        assert_unseen(self, [SECRET], self.lines, [], [self.folder])
        self.write("file", 0o600)
        self.assert_seen(secrets=[SECRET], folders=[self.folder])

    def test_a_file_that_others_may_read(self):
        for mode, folder_mode in ((0o600, 0o755), (0o644, 0o700)):
            self.write("file", mode, folder_mode)
            assert_unseen(self, [], self.lines, [], [self.folder], private=[SECRET])
        self.write("file", 0o644)
        self.assert_seen(private=[SECRET], folders=[self.folder])

    def test_the_secret_of_a_job_is_in_the_environment_of_its_ranks(self):
        environments = [b"A=1\0PEAL_SECRET=" + SECRET + b"\0B=2\0", b"", b"NOT_PEAL_SECRET=x\0"]
        self.assertEqual(secrets_of(environments), {SECRET})


if __name__ == "__main__":
    unittest.main()
