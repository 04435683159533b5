"""Sends a number from rank 0 to rank 1: first blocking, then asynchronously.

    peal run -n 2 python examples/python/point_to_point.py
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist


def blocking() -> torch.Tensor:
    """Both calls return when the data may be used again."""
    data = torch.zeros(1)
    if dist.get_rank() == 0:
        data += 1
        dist.send(data, dst=1)
    elif dist.get_rank() == 1:
        dist.recv(data, src=0)
    return data


def non_blocking() -> torch.Tensor:
    """Both calls return at once. Before wait() returns, do not write the data, and do not read received
    data."""
    data = torch.zeros(1)
    request = None
    if dist.get_rank() == 0:
        data += 1
        request = dist.isend(data, dst=1)
    elif dist.get_rank() == 1:
        request = dist.irecv(data, src=0)
    if request is not None:
        request.wait()
    return data


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="peal")
    dist.init_process_group(parser.parse_args().backend)
    for how in (blocking, non_blocking):
        data = how()
        print(f"{how.__name__}: rank {dist.get_rank()} has {data[0].item()}", flush=True)
        assert data[0] == (1 if dist.get_rank() < 2 else 0)
    dist.destroy_process_group()
