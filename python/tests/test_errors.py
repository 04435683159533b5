"""peal's exceptions as values, and the text of any exception."""

from __future__ import annotations

import copy
import pickle
import unittest
from typing import Any

import peal
from needs import torch_wanted
from peal._errors import words_of


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class PicklingTest(unittest.TestCase):
    def check(self, error: peal.Error) -> None:
        """Every way of copying gives an equal error, also a copy of a copy."""
        error.step = 7  # type: ignore[attr-defined]  # an attribute that a user adds
        ways: list[Any] = [copy.copy, copy.deepcopy]
        ways += [lambda e, p=p: pickle.loads(pickle.dumps(e, p))
                 for p in range(pickle.HIGHEST_PROTOCOL + 1)]
        for way in ways:
            again = way(way(error))
            self.assertIs(type(again), type(error))
            self.assertEqual((str(again), again.args, again.kind, again.step),
                             (str(error), error.args, error.kind, 7))

    def test_a_copied_error_is_equal(self) -> None:
        self.check(peal.Error("all_reduce: rank 1 is late", "timeout"))
        self.check(peal.Error("usage: said twice", "usage"))

    def test_a_copied_error_of_spawn_keeps_the_errors_of_all_ranks(self) -> None:
        error = peal.SpawnError("rank 1 failed first", "timeout", [None, peal.Error("late", "timeout")])
        self.check(error)
        again = pickle.loads(pickle.dumps(error))
        self.assertIsNone(again.errors[0])
        self.assertEqual([str(again.errors[1]), again.errors[1].kind], ["timeout: late", "timeout"])

    @torch_wanted
    def test_a_copied_error_of_the_backend_has_torchs_text_once(self) -> None:
        import torch.distributed as dist
        from peal._torch import DistError

        error = DistError("rank 1 is late", "timeout")
        self.check(error)
        again = pickle.loads(pickle.dumps(error))
        self.assertIsInstance(again, dist.DistBackendError)
        self.assertEqual(str(again), "timeout: after a timeout was reached: rank 1 is late")
        self.check(DistError("rank 1 ended", "peer_lost"))


class WordsTest(unittest.TestCase):
    def test_the_words_of_an_exception_are_its_class_and_text(self) -> None:
        self.assertEqual(words_of(KeyError("x")), "KeyError: 'x'")
        self.assertEqual(words_of(KeyboardInterrupt()), "KeyboardInterrupt")

    def test_an_exception_without_readable_text_has_words_too(self) -> None:
        self.assertIn("Speechless", words_of(Speechless()))

    def test_words_with_any_characters_can_be_encoded(self) -> None:
        self.assertEqual(words_of(OSError("\udcff")), "OSError: \\udcff")


if __name__ == "__main__":
    unittest.main()
