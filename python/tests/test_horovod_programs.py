"""An unmodified program of Horovod on peal."""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from needs import import_torch

import_torch()

from programs import output_of, with_path

# A machine may lack a GPU, and torchvision on PyPI needs a torch with CUDA. These files stand for both. They end the
# program at its fourth epoch, because a hundred epochs take minutes.
STAND_INS = {
    "torchvision/__init__.py": """
        import sys
        import torch
        import tqdm
        from torchvision import datasets, transforms

        if not torch.cuda.is_available():
            torch.cuda.set_device = lambda device: None
            torch.Tensor.cuda = torch.nn.Module.cuda = lambda self: self
        epochs = 0
        bar = tqdm.tqdm

        def bar_of_three_epochs(loader):
            global epochs
            epochs += 1
            if epochs == 4:
                import horovod.torch as hvd
                import __main__
                weights = [parameter.sum().item() for parameter in __main__.model.parameters()]
                print('equal :', len({str(one) for one in hvd.allgather_object(weights)}) == 1, flush=True)
                sys.exit(0)
            return bar(loader)

        tqdm.tqdm = bar_of_three_epochs
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
}
STAND_IN_OF_TQDM = "def tqdm(loader): return loader"


class DocumentTest(unittest.TestCase):
    def test_the_program_of_the_page_runs_unmodified(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            stand_ins = dict(STAND_INS)
            if importlib.util.find_spec("tqdm") is None:
                stand_ins["tqdm.py"] = STAND_IN_OF_TQDM
            for name, text in stand_ins.items():
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


if __name__ == "__main__":
    unittest.main()
