"""DistributedDataParallel with a trainer, on ranks that torch.multiprocessing starts.

    python examples/python/train_ddp.py --ranks 2 [--data FOLDER_OF_MNIST]
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import digits
from models import Digits


def set_up(rank: int, size: int, backend: str) -> None:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29501")
    dist.init_process_group(backend, rank=rank, world_size=size)


def prepare_loader(data: Dataset, batch: int) -> DataLoader:
    """The sampler gives each rank other digits, and shuffles them."""
    return DataLoader(data, batch_size=batch, shuffle=False, sampler=DistributedSampler(data))


class Trainer:
    def __init__(self, model: torch.nn.Module, loader: DataLoader,
                 optimizer: torch.optim.Optimizer) -> None:
        self.model = DistributedDataParallel(model)
        self.loader = loader
        self.optimizer = optimizer

    def train(self, epochs: int) -> None:
        for epoch in range(epochs):
            self._run_epoch(epoch)

    def _run_epoch(self, epoch: int) -> None:
        self.loader.sampler.set_epoch(epoch)  # each epoch has another order
        self.model.train()
        for step, (images, labels) in enumerate(self.loader):
            loss = torch.nn.functional.nll_loss(self.model(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 10 == 0:
                print(f"rank {dist.get_rank()}, epoch {epoch}, step {step}: loss {loss.item():.9f}",
                      flush=True)


def main(rank: int, size: int, arguments: argparse.Namespace) -> None:
    set_up(rank, size, arguments.backend)
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    model = Digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    Trainer(model, prepare_loader(digits.load(arguments.data), arguments.batch),
            optimizer).train(arguments.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--data", help="a folder with MNIST's t10k files; else digits are drawn")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()
    mp.spawn(main, args=(arguments.ranks, arguments), nprocs=arguments.ranks, join=True)
