"""An optimizer that averages gradients, as in Horovod: it sends each gradient as soon as backward has
computed it, and step() waits for all gradients.

    peal run -n 2 python examples/python/train_optimizer.py [--data FOLDER_OF_MNIST]
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

import digits
from models import Digits


class DistributedOptimizer:
    def __init__(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
        self.optimizer = optimizer
        self.works: list[dist.Work] = []
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(self._send)

    def _send(self, parameter: torch.Tensor) -> None:
        parameter.grad /= dist.get_world_size()
        self.works.append(dist.all_reduce(parameter.grad, async_op=True))

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def step(self) -> None:
        for work in self.works:
            work.wait()
        self.works.clear()
        self.optimizer.step()


def broadcast_parameters(model: torch.nn.Module, root: int) -> None:
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=root)


def train(data: str | None, epochs: int) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234 + rank)  # ranks begin with different weights and then get rank 0's
    model = Digits()
    broadcast_parameters(model, root=0)
    optimizer = DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=1e-3), model)
    dataset = digits.load(data)
    sampler = DistributedSampler(dataset, num_replicas=size, rank=rank)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        loss_sum, right = 0.0, 0
        for images, labels in loader:
            optimizer.zero_grad()
            output = model(images)
            loss = torch.nn.functional.nll_loss(output, labels)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
            right += int((output.argmax(dim=1) == labels).sum())
        print(f"rank {rank}, epoch {epoch}: loss {loss_sum / len(loader):.9f}, "
              f"accuracy {right / len(sampler):.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    parser.add_argument("--data", help="a folder with MNIST's t10k files; else digits are drawn")
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    dist.init_process_group(arguments.backend)
    train(arguments.data, arguments.epochs)
    dist.destroy_process_group()
