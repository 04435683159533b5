"""docs/guide/runners.md is what docs/runners_table.py makes from the tests."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs"))
import runners_table


class TheTableOfRunners(unittest.TestCase):
    maxDiff = None

    def test_is_made_from_the_tests(self):
        text = runners_table.page()
        if os.environ.get("PEAL_TEST_ACCEPT"):
            runners_table.OUTPUT.write_text(text)
        self.assertEqual(runners_table.OUTPUT.read_text(), text, "update it by: python3 docs/runners_table.py")


if __name__ == "__main__":
    unittest.main()
