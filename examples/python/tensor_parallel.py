"""Tensor parallelism by DTensor: the first layer of a block is split by columns, the second layer by
rows, so that ranks communicate once in each block.

    peal run -n 2 python examples/python/tensor_parallel.py
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

from models import blocks


def train(steps: int, width: int = 64) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = blocks(number=2, width=width)
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    random = torch.Generator().manual_seed(0)  # all ranks need the same data, because the model is split
    for step in range(steps):
        data = torch.randn(16, width, generator=random, dtype=torch.float64)
        loss = (model(data) - data.roll(1, dims=1)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"rank {dist.get_rank()}, step {step}: loss {loss.item():.9f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    dist.init_process_group(arguments.backend)
    torch.set_num_threads(1)
    train(arguments.steps)
    dist.destroy_process_group()
