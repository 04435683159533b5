"""Whole programs on peal.horovod: an unmodified script of Horovod, horovod.run, and ranks that die."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from needs import import_torch

import_torch()

from programs import output_of

# torchvision and tqdm are not installed here, and a machine may lack a GPU. These files stand for them.
# The one of tqdm ends the program at its fourth epoch, because a hundred epochs take minutes.
STAND_INS = {
    "torchvision/__init__.py": """
        import torch
        from torchvision import datasets, transforms

        if not torch.cuda.is_available():
            torch.cuda.set_device = lambda device: None
            torch.Tensor.cuda = torch.nn.Module.cuda = lambda self: self
        """,
    "torchvision/transforms.py": "def ToTensor(): return lambda image: image",
    "torchvision/datasets.py": """
        import torch

        class MNIST(torch.utils.data.Dataset):
            def __init__(self, root, train, transform):
                generator = torch.Generator().manual_seed(0)
                self.labels = torch.randint(10, (512,), generator=generator)
                patterns = torch.rand(10, 1, 28, 28, generator=generator).round()
                self.images = patterns[self.labels] + 0.1 * torch.rand(512, 1, 28, 28, generator=generator)
                self.transform = transform

            def __len__(self):
                return len(self.labels)

            def __getitem__(self, index):
                return self.transform(self.images[index]), int(self.labels[index])
        """,
    "tqdm.py": """
        import sys

        epochs = 0

        def tqdm(loader):
            global epochs
            epochs += 1
            if epochs == 4:
                import horovod.torch as hvd
                import __main__
                weights = [parameter.sum().item() for parameter in __main__.model.parameters()]
                print('equal :', len({str(one) for one in hvd.allgather_object(weights)}) == 1, flush=True)
                sys.exit(0)
            return loader
        """,
}


def with_path(*folders: str) -> str:
    return os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])


class DocumentTest(unittest.TestCase):
    def test_the_program_of_the_page_runs_unmodified(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in STAND_INS.items():
                path = Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(textwrap.dedent(text))
            script = Path(__file__).with_name("horovod_document.py")
            text = output_of(sys.executable, "-m", "peal", "run", "--no-prefix", "-n", "2", sys.executable, "-m",
                             "peal.horovod", script, PYTHONPATH=with_path(folder), OMP_NUM_THREADS="1")
        losses = [float(loss) for loss in re.findall(r"loss : ([\d.]+)", text)]
        self.assertEqual(len(losses), 2 * 3, text)
        self.assertLess(max(losses[-2:]), min(losses[:2]))
        self.assertEqual(text.count("acc : "), 2 * 3)
        self.assertEqual(text.count("equal : True"), 2, text)


def place_and_sum(value: int, factor: int = 1) -> tuple[str | None, int, int, float]:
    import torch

    import peal.horovod as hvd

    hvd.init()
    total = hvd.allreduce(torch.tensor(float(value * (hvd.rank() + 1))), op=hvd.Sum, name="value")
    place = (os.environ.get("HOROVOD_HOSTNAME"), hvd.rank(), hvd.local_rank(), factor * float(total))
    print("rank", hvd.rank(), flush=True)
    return place


def raise_on_rank_1() -> None:
    import peal.horovod as hvd

    hvd.init()
    if hvd.rank() == 1:
        raise LookupError("no such row")
    hvd.barrier()


class RunTest(unittest.TestCase):
    def test_a_function_runs_on_ranks_and_gives_a_list_of_results(self) -> None:
        import peal.horovod as hvd

        with tempfile.TemporaryDirectory() as folder:
            got = hvd.run(place_and_sum, (1,), {"factor": 10}, num_proc=3, hosts="localhost:2,127.0.0.1:2",
                          output_filename=folder)
            self.assertEqual(got, [("localhost", 0, 0, 60.0), ("localhost", 1, 1, 60.0),
                                   ("127.0.0.1", 2, 0, 60.0)])
            for rank in range(3):
                self.assertEqual(Path(folder, f"rank.{rank}/stdout").read_text(), f"rank {rank}\n")
                self.assertTrue(Path(folder, f"rank.{rank}/stderr").exists())

    def test_an_exception_shows_the_traceback_of_its_rank(self) -> None:
        import peal.horovod as hvd

        with self.assertRaises(RuntimeError) as caught:
            hvd.run(raise_on_rank_1, num_proc=2)
        text = str(caught.exception)
        self.assertIn("rank 1 of 2 failed first: LookupError: no such row", text)
        self.assertIn("in raise_on_rank_1", text)

    @unittest.skipUnless(importlib.util.find_spec("cloudpickle"), "cloudpickle is not installed")
    def test_with_cloudpickle_a_script_needs_no_guard_and_lambdas_work(self) -> None:
        program = ("import horovod.torch as hvd, horovod\n"
                   "class Result(tuple): pass\n"
                   "def work(x): hvd.init(); return Result([x, hvd.rank()])\n"
                   "print(horovod.run(work, (7,), num_proc=2), horovod.run(lambda: 3, num_proc=1))\n")
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "program.py")
            script.write_text(program)
            text = output_of(sys.executable, "-m", "peal.horovod", script)
        self.assertEqual(text, "[(7, 0), (7, 1)] [3]\n")

    @unittest.skipIf(importlib.util.find_spec("cloudpickle"), "cloudpickle is installed")
    def test_without_cloudpickle_the_error_says_what_to_install(self) -> None:
        import peal.horovod as hvd

        with self.assertRaisesRegex(ValueError, "Install cloudpickle"):
            hvd.run(lambda: 3, num_proc=1)


if __name__ == "__main__":
    unittest.main()
