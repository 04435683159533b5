"""Training that a cluster may stop, by SIGTERM or before a time limit. Then all ranks end after the same step, and
rank 0 saves a checkpoint. The next run continues from the checkpoint.

    peal run -n 2 --grace 60 python examples/python/train_until_sigterm.py --checkpoint FILE
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import peal

import digits
from models import Digits


def save(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    if dist.get_rank() == 0:
        new = path.with_suffix(".new")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
                   new)
        new.rename(path)  # so that a checkpoint is never incomplete
        print(f"saved after step {step}", flush=True)
    dist.barrier()


def train(arguments: argparse.Namespace) -> None:
    model, step = Digits(), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if arguments.checkpoint.exists():
        saved = torch.load(arguments.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        print(f"rank {dist.get_rank()} continues after step {step}", flush=True)
    parallel = DistributedDataParallel(model)
    data = digits.load(None)
    loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data), num_workers=2,
                        persistent_workers=True)
    while True:
        for images, labels in loader:
            if step == arguments.steps or peal.should_stop():
                return save(arguments.checkpoint, model, optimizer, step)
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(parallel(images), labels)
            loss.backward()
            optimizer.step()
            step += 1
            print(f"rank {dist.get_rank()}, step {step}: loss {loss.item():.9f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1_000_000)
    arguments = parser.parse_args()
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    dist.init_process_group(arguments.backend)
    train(arguments)
    dist.destroy_process_group()
