"""What the tests of this folder share: a stand-in cluster for each class of tests.

    X_test.py TOOL PEAL [EXAMPLE] [unittest's arguments]

TOOL is peal_kubernetes_tool, PEAL the program peal, EXAMPLE a program of peal whose ranks meet.
"""
import pathlib
import re
import sys
import unittest

import stand_in
from stand_in import StandIn

SKIPPED = 77  # the exit code that ctest reads as skipped


def two_roles(workers, command, **more):
    return {"name": "job", **more, "roles": [
        {"name": "master", "image": "any", "command": command},
        {"name": "worker", "nodes": workers, "image": "any", "command": command}]}


class Cluster(unittest.TestCase):
    tool = None
    peal = None
    example = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = StandIn(cls.tool)
        cls.addClassCleanup(cls.cluster.stop)

    def lines(self, name, *flags):
        """The lines of the log by node."""
        lines = {}
        for line in self.cluster.run("logs", name, *flags).splitlines():
            found = re.fullmatch(r"\[([^\]]*)\] (.*)", line)
            self.assertIsNotNone(found, line)
            lines.setdefault(found[1], []).append(found[2])
        return lines


def main():
    """Ends with SKIPPED without kubectl, or if this machine allows no namespaces."""
    if reason := stand_in.why_not():
        print("SKIPPED:", reason)
        sys.exit(SKIPPED)
    Cluster.tool, Cluster.peal = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    rest = sys.argv[3:]
    if rest and pathlib.Path(rest[0]).exists():
        Cluster.example = str(pathlib.Path(rest.pop(0)).resolve())
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
