"""Fully sharded training (FSDP2): each rank keeps a part of every parameter, and gathers the parameters
of a layer just before it runs the layer.

    peal run -n 2 python examples/python/train_fsdp.py
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from models import blocks


def train(steps: int, width: int = 64) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = blocks(number=3, width=width)
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    random = torch.Generator().manual_seed(dist.get_rank())
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
