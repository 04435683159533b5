"""The worker of `peal bench` for gloo, without torch: its answers for an operation that fails.

Called by ctest with the script.
"""
import pathlib
import sys
import types
import unittest
from unittest import mock

SCRIPT = sys.argv.pop(1)


def load():
    """The worker as a module, with a mock in place of torch."""
    torch = mock.MagicMock()
    worker = types.ModuleType("worker")
    arguments = [SCRIPT, "socket", "flags", "spin", "0", "2", "meeting"]
    with mock.patch.dict(sys.modules, {"torch": torch, "torch.distributed": torch.distributed}), \
            mock.patch.object(sys, "argv", arguments):
        exec(compile(pathlib.Path(SCRIPT).read_text(), SCRIPT, "exec"), worker.__dict__)
    return worker


class AnOperationThatFails(unittest.TestCase):
    def answer(self, error):
        worker = load()
        with mock.patch.object(worker, "Case") as case:
            case.return_value.run.side_effect = error
            return worker.prepare({}, mock.Mock())

    def test_is_missing_if_the_type_or_the_operation_is_missing(self):
        for error in (RuntimeError("Invalid scalar type\nException raised from"),
                      RuntimeError("ProcessGroupGloo does not support reduce_scatter"),
                      RuntimeError("unsupported data type"),
                      RuntimeError("Unsupported reduce operation"),
                      NotImplementedError("nothing of that kind")):
            with self.subTest(error):
                self.assertEqual(self.answer(error), (None, "missing " + str(error).splitlines()[0]))

    def test_has_failed_after_any_other_error(self):
        for error in (RuntimeError("[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:33"),
                      RuntimeError("Timed out waiting 1800000ms for recv operation to complete"),
                      ValueError("tensors do not match"), MemoryError(""), OSError("no route")):
            with self.subTest(error):
                case, answer = self.answer(error)
                self.assertIsNone(case)
                self.assertTrue(answer.startswith("failed "), answer)
                self.assertIn(type(error).__name__, answer)
                self.assertEqual(len(answer.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
