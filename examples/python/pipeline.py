"""A pipeline with one stage on each rank: micro-batches go from stage to stage, and their gradients go
back.

    peal run -n 2 python examples/python/pipeline.py
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from models import blocks


def train(steps: int, width: int = 64, micro_batches: int = 4) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    module = blocks(number=size, width=width)[rank]  # the same seed on every rank
    stage = PipelineStage(module, rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, micro_batches,
                             loss_fn=lambda y, target: (y - target).square().mean())
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    random = torch.Generator().manual_seed(0)
    for step in range(steps):
        data = torch.randn(16, width, generator=random, dtype=torch.float64)
        losses: list[torch.Tensor] = []
        optimizer.zero_grad()
        inputs = (data,) if rank == 0 else ()
        if rank == size - 1:
            schedule.step(*inputs, target=data.roll(1, dims=1), losses=losses)
            print(f"rank {rank}, step {step}: loss {torch.stack(losses).mean().item():.9f}",
                  flush=True)
        else:
            schedule.step(*inputs)
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    dist.init_process_group(arguments.backend)
    torch.set_num_threads(1)
    train(arguments.steps)
    dist.destroy_process_group()
