"""Prints the numbers of passed and failed tests, from the JUnit report of a ctest run. Then prints a line for
each skipped test, with the reason.

A GoogleTest program counts as the tests in it, any other test as one. Called by scripts/test.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def skipped(case):
    """The reason of a skipped test; None if the test was not skipped."""
    message = case.find("skipped")
    if message is None or not message.get("message").startswith("SKIP_RETURN_CODE"):
        return None
    reason = re.search(r"^SKIPPED: (.*)$", case.findtext("system-out", ""), re.MULTILINE)
    return reason[1] if reason else "no reason given"


def count(case):
    output = case.findtext("system-out", "")
    ran = re.search(r"^\[=+\] Running (\d+) tests? from", output, re.MULTILINE)
    total = int(ran[1]) if ran else 1
    if case.get("status") == "run":
        return total, 0
    listed = re.search(r"^ *(\d+) FAILED TESTS?$", output, re.MULTILINE)
    # A program that crashed reports no further tests, so all its tests count as failed.
    return (total - int(listed[1]), int(listed[1])) if listed else (0, total)


def main(report):
    try:
        cases = ElementTree.parse(report).findall("testcase")
    except (OSError, ElementTree.ParseError):
        cases = []
    counts = [count(case) for case in cases if skipped(case) is None]
    # A missing or empty report counts as a failure.
    print(*(map(sum, zip(*counts)) if counts else (0, 1)))
    for case in cases:
        if reason := skipped(case):
            print(f"{case.get('name')}: {reason}")


main(sys.argv[1])
