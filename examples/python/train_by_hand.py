"""Distributed SGD by hand: each rank has a part of the digits, and an all_reduce averages each
gradient.

    peal run -n 2 python examples/python/train_by_hand.py [--data FOLDER_OF_MNIST]
"""

from __future__ import annotations

import argparse
import random
from typing import Sequence

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, Subset

import digits
from models import Digits


class DataPartitioner:
    """Splits a data set at random into parts of the given fractions, in the same way on every rank."""

    def __init__(self, data: Dataset, fractions: Sequence[float], seed: int = 1234) -> None:
        self.data = data
        order = list(range(len(data)))
        random.Random(seed).shuffle(order)
        self.parts: list[list[int]] = []
        for fraction in fractions:
            size = int(fraction * len(data))
            self.parts.append(order[:size])
            order = order[size:]

    def use(self, part: int) -> Subset:
        return Subset(self.data, self.parts[part])


def partition_digits(data: str | None, batch: int) -> DataLoader:
    """The part of this rank. All ranks together take `batch` digits for each step."""
    size = dist.get_world_size()
    part = DataPartitioner(digits.load(data), [1 / size] * size).use(dist.get_rank())
    return DataLoader(part, batch_size=batch // size, shuffle=True,
                      generator=torch.Generator().manual_seed(dist.get_rank()))


def average_gradients(model: torch.nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
        parameter.grad /= dist.get_world_size()


def train(data: str | None, epochs: int) -> list[float]:
    """The mean loss of this rank's batches, by epoch."""
    torch.manual_seed(1234)
    model = Digits()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    batches = partition_digits(data, batch=64)
    losses = []
    for epoch in range(epochs):
        total = 0.0
        for images, labels in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(model(images), labels)
            total += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        losses.append(total / len(batches))
        print(f"rank {dist.get_rank()}, epoch {epoch}: loss {losses[-1]:.9f}", flush=True)
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    parser.add_argument("--data", help="a folder with MNIST's t10k files; else digits are drawn")
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    dist.init_process_group(arguments.backend)
    train(arguments.data, arguments.epochs)
    dist.destroy_process_group()
