"""peal's exceptions as values, and what is said of any."""

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
        """It comes back as it was, however often, and by every way of copying."""
        error.step = 7  # type: ignore[attr-defined]  # what users add
        ways: list[Any] = [copy.copy, copy.deepcopy]
        ways += [lambda e, p=p: pickle.loads(pickle.dumps(e, p))
                 for p in range(pickle.HIGHEST_PROTOCOL + 1)]
        for way in ways:
            again = way(way(error))
            self.assertIs(type(again), type(error))
            self.assertEqual((str(again), again.args, again.kind, again.step),
                             (str(error), error.args, error.kind, 7))

    def test_an_error_stays_the_same(self) -> None:
        self.check(peal.Error("all_reduce: rank 1 is late", "timeout"))
        self.check(peal.Error("usage: said twice", "usage"))

    def test_an_error_of_spawn_keeps_what_each_rank_raised(self) -> None:
        error = peal.SpawnError("rank 1 failed first", [None, peal.Error("late", "timeout")])
        self.check(error)
        again = pickle.loads(pickle.dumps(error))
        self.assertIsNone(again.errors[0])
        self.assertEqual([str(again.errors[1]), again.errors[1].kind], ["timeout: late", "timeout"])

    @torch_wanted
    def test_an_error_of_the_backend_says_its_words_for_torch_once(self) -> None:
        import torch.distributed as dist
        from peal._torch import DistError

        error = DistError("rank 1 is late", "timeout")
        self.check(error)
        again = pickle.loads(pickle.dumps(error))
        self.assertIsInstance(again, dist.DistBackendError)
        self.assertEqual(str(again), "timeout: after a timeout was reached: rank 1 is late")
        self.check(DistError("rank 1 ended", "peer_lost"))


class WordsTest(unittest.TestCase):
    def test_an_exception_is_its_class_and_what_it_says(self) -> None:
        self.assertEqual(words_of(KeyError("x")), "KeyError: 'x'")

    def test_one_that_cannot_say_anything_has_words_too(self) -> None:
        self.assertIn("Speechless", words_of(Speechless()))

    def test_words_can_be_encoded_whatever_is_in_them(self) -> None:
        self.assertEqual(words_of(OSError("\udcff")), "OSError: \\udcff")


if __name__ == "__main__":
    unittest.main()
