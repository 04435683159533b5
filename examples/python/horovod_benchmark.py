"""Images per second of a small convolutional network with synthetic data, under Horovod's optimizer.

    peal run -n 2 python examples/python/horovod_benchmark.py [--fp16-allreduce] [--use-adasum]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import peal.horovod as hvd
import torch
from torch import nn


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 256), nn.ReLU(), nn.Linear(256, 1000))


def benchmark(arguments: argparse.Namespace) -> None:
    hvd.init()
    torch.manual_seed(0)
    model = network()
    # Adasum needs no larger learning rate for more ranks.
    rate = 0.01 if arguments.use_adasum else 0.01 * hvd.size()
    optimizer: Any = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=rate), named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none,
        op=hvd.Adasum if arguments.use_adasum else hvd.Average)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    images = torch.randn(arguments.batch_size, 3, 32, 32)
    labels = torch.randint(1000, (arguments.batch_size,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    for _ in range(arguments.num_warmup_batches):
        step()
    rates = []
    for _ in range(arguments.num_iters):
        hvd.barrier()
        begin = time.monotonic()
        for _ in range(arguments.num_batches_per_iter):
            step()
        rates.append(arguments.batch_size * arguments.num_batches_per_iter / (time.monotonic() - begin))
    own = statistics.median(rates)
    total = hvd.allreduce(torch.tensor(own, dtype=torch.float64), op=hvd.Sum, name="rate")
    if hvd.rank() == 0:
        print(f"{own:.1f} images/s on each rank, {float(total):.1f} on {hvd.size()} ranks", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-warmup-batches", type=int, default=5)
    parser.add_argument("--num-batches-per-iter", type=int, default=5)
    parser.add_argument("--num-iters", type=int, default=5)
    parser.add_argument("--fp16-allreduce", action="store_true", help="gradients travel in 16 bits")
    parser.add_argument("--use-adasum", action="store_true")
    benchmark(parser.parse_args())
