"""Training on handwritten digits with Horovod's API: Adam, cross-entropy, and a part of the data for each
rank. The batches of all ranks together are the same for any number of ranks, if --batch is divided by it.

    peal run -n 2 python examples/python/horovod_mnist.py [--data FOLDER_OF_MNIST]
"""

from __future__ import annotations

import argparse
import sys
from typing import Iterable, Iterator, TypeVar

import peal.horovod as hvd  # was: import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

import digits

Item = TypeVar("Item")


class Model(nn.Module):
    """Two convolutions and two linear layers. In double precision, so that the printed losses do not depend
    on the number of ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(8, 16, kernel_size=5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Flatten(), nn.Linear(256, 50), nn.ReLU(), nn.Linear(50, 10))
        self.double()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(images)
        return logits


def progress(loader: Iterable[Item], total: int) -> Iterator[Item]:
    """A bar on the terminal of rank 0, as tqdm draws it."""
    shown = hvd.rank() == 0 and sys.stderr.isatty()
    for i, item in enumerate(loader, 1):
        yield item
        if shown:
            print(f"\r{'#' * (40 * i // total):40} {i}/{total}", end="\n" if i == total else "", file=sys.stderr)


def train(data: str | None, epochs: int, batch: int) -> None:
    hvd.init()
    if torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank())
    torch.manual_seed(1234)
    dataset = digits.load(data)
    sampler: DistributedSampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(dataset, batch_size=batch, sampler=sampler)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    criterion = nn.CrossEntropyLoss()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        loss, hits = 0.0, 0.0
        for images, labels in progress(loader, len(loader)):
            optimizer.zero_grad()
            logits = model(images)
            step_loss = criterion(logits, labels)
            step_loss.backward()
            optimizer.step()
            loss += step_loss.item() / len(loader)
            hits += logits.argmax(1).eq(labels).double().mean().item() / len(loader)
        loss, hits = hvd.allreduce(torch.tensor([loss, hits], dtype=torch.float64), name="metrics").tolist()
        print(f"rank {hvd.rank()}, epoch {epoch}: loss {loss:.9f}, accuracy {hits:.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="a folder with MNIST's t10k files; else digits are drawn")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=50, help="digits of a rank in a step")
    arguments = parser.parse_args()
    train(arguments.data, arguments.epochs, arguments.batch)
