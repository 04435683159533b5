#!/usr/bin/env python3
"""Writes docs/guide/runners.md: what each runner supports, from the tests that show it (tests/engines/capabilities.py).

    python3 docs/runners_table.py
"""

from __future__ import annotations

import importlib.util
import sys
import unittest
from collections import defaultdict
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs/guide/runners.md"
TESTS = ("jobs/runners_test.py", "jobs/mnist_test.py", "slurm/runner_test.py", "kubernetes/commands_test.py",
         "hosts/elastic_test.py", "containers/containers_test.py", "containers/jobs_test.py")

sys.path.insert(0, str(ROOT / "tests/engines"))
from capabilities import CAPABILITIES, RUNNERS, WITHOUT_MEANING  # noqa: E402

HEAD = """# What each runner supports

`docs/runners_table.py` makes this page from the tests. The columns are the runners of [`peal submit --to`](submit.md), and [`peal run --image`](containers.md). For the row "elastic", `peal run` starts the job instead of `peal submit`, except in Kubernetes. A cell has

- **yes** if a test shows the capability with this runner and its real engine. [The list below](#the-tests) names the test. For Kubernetes, the engine is the real `kubectl` with [a stand-in for the API server](kubernetes.md#without-a-cluster);
- **no** if a test shows that peal refuses it. [The list below](#what-is-refused) quotes the error;
- **–** if the capability has [no meaning](#what-has-no-meaning) for this runner;
- nothing if no test covers it.
"""


def load(path: Path) -> unittest.TestSuite:
    """The tests of the file. No test runs here, so the arguments only stand for the programs of the tests."""
    sys.path[:0] = [str(path.parent)]
    before, sys.argv = sys.argv, [str(path), "/peal", *["/program"] * 3]
    try:
        spec = importlib.util.spec_from_file_location(f"tests.{path.parent.name}.{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.argv = before
        sys.path.remove(str(path.parent))
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def flat(tests: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


class Shown:
    """What the tests show."""

    def __init__(self) -> None:
        self.runners = defaultdict(lambda: defaultdict(list))  # capability -> (file, test) -> runners
        self.refused = defaultdict(dict)  # capability -> runner -> the text of the error
        for name in TESTS:
            found = False
            for test in flat(load(ROOT / "tests" / name)):
                method = test.id().rsplit(".", 1)[-1]
                for capability in getattr(getattr(test, method), "shows", ()):
                    found = True
                    self.add(capability, test, name, method)
            assert found, f"no test of {name} shows anything"

    def add(self, capability: str, test: unittest.TestCase, file: str, method: str) -> None:
        assert test.runner in RUNNERS, f"{test.id()}: {test.runner} is not in RUNNERS"
        if capability in getattr(test, "refuses", {}):
            self.refused[capability][test.runner] = test.refuses[capability]
        else:
            self.runners[capability][file, method].append(test.runner)

    def cell(self, capability: str, runner: str) -> str:
        cells = [word for word, is_so in (
            ("yes", any(runner in runners for runners in self.runners[capability].values())),
            ("no", runner in self.refused[capability]),
            ("–", runner in WITHOUT_MEANING.get(capability, {}))) if is_so]
        assert len(cells) < 2, f"{capability}, {runner}: {cells}"
        return cells[0] if cells else ""


def names(runners: list[str]) -> str:
    return ", ".join(RUNNERS[runner] for runner in RUNNERS if runner in runners)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def by_sentence(sentences: dict[str, dict[str, str]]) -> list[list[str]]:
    """Rows: the capability, the runners, and what is said of them."""
    rows = []
    for capability in CAPABILITIES:
        runners = defaultdict(list)
        for runner, sentence in sentences.get(capability, {}).items():
            runners[sentence].append(runner)
        rows += [[capability, names(those), sentence] for sentence, those in runners.items()]
    return rows


def page() -> str:
    shown = Shown()
    cells = [[capability, *(shown.cell(capability, runner) for runner in RUNNERS)] for capability in CAPABILITIES]
    tests = [[capability, f"[{method}](../../tests/{file})", names(runners)] for capability in CAPABILITIES
             for (file, method), runners in shown.runners[capability].items()]
    return "\n".join([
        HEAD, table(["", *RUNNERS.values()], cells),
        "## What is refused\n", table(["", "runner", "the error says"], by_sentence(shown.refused)),
        "## What has no meaning\n", table(["", "runner", "reason"], by_sentence(WITHOUT_MEANING)),
        "## The tests\n", table(["", "test", "runner"], tests)])


if __name__ == "__main__":
    OUTPUT.write_text(page())
