"""A script for a managed cluster, which starts it on each machine. The cluster sets RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT.

    peal run -n 2 python examples/python/train_cluster.py
    torchrun --nproc-per-node 2 examples/python/train_cluster.py
"""

from __future__ import annotations

import argparse

import torch
from torch.utils.data import DataLoader, DistributedSampler

import digits
from models import Digits

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="peal")
parser.add_argument("--data", help="a folder with MNIST's t10k files; else digits are drawn")
arguments = parser.parse_args()

torch.distributed.init_process_group(backend=arguments.backend, init_method="env://")
torch.manual_seed(1234)
model = torch.nn.parallel.DistributedDataParallel(Digits())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
data = digits.load(arguments.data)
for step, (images, labels) in enumerate(
        DataLoader(data, batch_size=32, sampler=DistributedSampler(data))):
    optimizer.zero_grad()
    loss = torch.nn.functional.nll_loss(model(images), labels)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"rank {torch.distributed.get_rank()}, step {step}: loss {loss.item():.9f}",
              flush=True)
torch.distributed.destroy_process_group()
