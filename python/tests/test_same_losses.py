"""Training from the same weights on the same batches gives the same losses and gradients by torch's
DistributedDataParallel on gloo, by peal.DistributedDataParallel, and in C++.

The program in C++ is tests/training/losses.cpp. PEAL_CPP_EXAMPLES names the folder of compiled
programs. Without it, the test is skipped."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

import ranks
from needs import HAS_SAFETENSORS, import_torch
from programs import peal_run

import_torch()

import torch
import torch.distributed as dist
from torch import nn

import peal

PROGRAM = Path(os.environ.get("PEAL_CPP_EXAMPLES", ""), "peal_test_losses")
RANKS, STEPS, BATCH = 2, 50, 6


class Net(nn.Module):
    """That of losses.cpp."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.hidden = nn.Linear(36, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(torch.relu(self.norm(self.conv(images))), 2)
        logits: torch.Tensor = self.out(torch.relu(self.hidden(x.flatten(1))))
        return logits


def _write_inputs(folder: Path) -> None:
    from safetensors.torch import save_file

    torch.manual_seed(4)
    save_file(Net().state_dict(), folder / "net.safetensors")
    labels = torch.randint(4, (STEPS, RANKS, BATCH))
    # The class is the brightness of the picture.
    images = torch.randn(STEPS, RANKS, BATCH, 1, 8, 8) + labels[..., None, None, None]
    save_file({"images": images, "labels": labels}, folder / "batches.safetensors")


def _train(kind: str, folder: Path) -> None:
    """On one rank. Writes what losses.cpp writes."""
    from safetensors.torch import load_file, save_file

    net = Net()
    net.load_state_dict(load_file(folder / "net.safetensors"))
    batches = load_file(folder / "batches.safetensors")
    wrap = {"torch": nn.parallel.DistributedDataParallel, "peal": peal.DistributedDataParallel}
    model = wrap[kind](net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses, gradients = [], []
    for images, labels in zip(batches["images"], batches["labels"]):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[dist.get_rank()]), labels[dist.get_rank()])
        loss.backward()
        losses.append(loss.detach())
        gradients.append(torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None]))
        optimizer.step()
    save_file({"losses": torch.stack(losses), "gradients": torch.stack(gradients), **net.state_dict()},
              folder / f"{kind}-{dist.get_rank()}.safetensors")


@unittest.skipUnless(PROGRAM.is_file(), "PEAL_CPP_EXAMPLES does not name a folder of programs")
@unittest.skipUnless(HAS_SAFETENSORS, "safetensors is not installed")
class SameLosses(unittest.TestCase):
    def test_python_on_gloo_python_on_peal_and_cpp_train_alike(self) -> None:
        from safetensors.torch import load_file

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _write_inputs(folder)
            ranks.results(RANKS, _train, "torch", folder, backend="gloo")
            ranks.results(RANKS, _train, "peal", folder)
            peal_run(RANKS, PROGRAM, folder)
            of_torch, of_peal, of_cpp = (
                [load_file(folder / f"{kind}-{rank}.safetensors") for rank in range(RANKS)]
                for kind in ("torch", "peal", "cpp"))
        self.assertLess(of_torch[0]["losses"][-1], 0.5 * of_torch[0]["losses"][0], "nothing was learned")
        for rank, expected in enumerate(of_torch):
            self.assert_same(of_peal[rank], expected, f"peal, rank {rank}")
            self.assert_same(of_cpp[rank], expected, f"C++, rank {rank}")

    def assert_same(self, found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor],
                    run: str) -> None:
        self.assertEqual(found.keys(), expected.keys())
        for key in found:
            # torch broadcasts the buffers of rank 0 only before the next forward pass, and peal after
            # the backward pass.
            if key.startswith("norm.running") and "rank 0" not in run:
                continue
            with self.subTest(run=run, tensor=key):
                torch.testing.assert_close(found[key], expected[key], rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
