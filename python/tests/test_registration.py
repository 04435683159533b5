"""peal registers memory that torch uses again and again: the buckets of DistributedDataParallel."""

from __future__ import annotations

import datetime
import gc
import os
import tempfile
import unittest
from typing import Any

from needs import import_torch

import_torch()

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from programs import PATIENCE
from ranks import results

WIDTH = 256  # of a layer: 256 KiB of gradients, in a bucket


def areas() -> list[str]:
    with open("/proc/self/maps") as maps:
        return list(maps)


def area_of(address: int) -> str:
    for line in areas():
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        if begin <= address < end:
            return line
    return ""


def is_mapped(address: int) -> bool:
    return area_of(address) != ""


def is_shared(address: int) -> bool:
    """Whether ranks share the memory there."""
    return "memfd:peal" in area_of(address)


def middle(tensor: torch.Tensor) -> int:
    return tensor.data_ptr() + tensor.nbytes // 2


def make_model(**options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(torch.nn.Linear(WIDTH, WIDTH, bias=False), **options)


def train(model: DistributedDataParallel, steps: int) -> bool:
    """Trains, and returns whether every gradient is right for the ranks' inputs, 1 and 2."""
    right = True
    data = torch.full((1, WIDTH), dist.get_rank() + 1.0)
    for _ in range(steps):
        model.zero_grad(set_to_none=False)
        model(data).sum().backward()
        right = right and bool((gradient(model) == 1.5).all())
    return right


def gradient(model: DistributedDataParallel) -> torch.Tensor:
    grad = model.module.weight.grad
    assert isinstance(grad, torch.Tensor)
    return grad


def buckets_while_training() -> list[bool]:
    model = make_model(gradient_as_bucket_view=True)
    seen = [train(model, 1), is_shared(middle(gradient(model)))]
    return seen + [train(model, 20), is_shared(middle(gradient(model)))]


def buckets_of_copies() -> list[bool]:
    before = sum("memfd:peal" in line for line in areas())
    model = make_model()
    right = train(model, 24)
    return [right, sum("memfd:peal" in line for line in areas()) > before]


def freed() -> list[bool]:
    torch.empty(1 << 22)  # as below: keeps freed memory mapped
    model = make_model(gradient_as_bucket_view=True)
    train(model, 20)
    address = middle(gradient(model))
    seen = [is_shared(address)]
    del model
    gc.collect()
    seen += [is_mapped(address), is_shared(address)]
    return seen + [train(make_model(), 24)]


def freed_in_a_fork() -> list[bool]:
    # After this is freed, malloc takes smaller blocks from its heap, where it can reuse them.
    torch.empty(1 << 22)
    model = make_model(gradient_as_bucket_view=True)
    train(model, 20)
    seen = [is_shared(middle(gradient(model)))]
    child = os.fork()
    if child == 0:
        del model
        gc.collect()
        used = [torch.full((WIDTH, WIDTH), 7.0) for _ in range(64)]
        os._exit(len(used) - 64)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return seen + [ended, bool((gradient(model) == 1.5).all()), train(model, 4)]


def held_by_the_script() -> bool:
    data = torch.ones(WIDTH, WIDTH)
    for _ in range(40):
        dist.all_reduce(data, op=dist.ReduceOp.AVG)
    return is_shared(middle(data))


def in_the_next_group(folder: str) -> list[bool]:
    rank = dist.get_rank()
    before = make_model()
    seen = [train(before, 20)]
    dist.destroy_process_group()
    dist.init_process_group("peal", init_method=f"file://{folder}/again", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=PATIENCE))
    model = make_model(gradient_as_bucket_view=True)
    seen.append(train(model, 20))
    del before
    gc.collect()
    return seen + [train(model, 4), is_shared(middle(gradient(model)))]


class RegistrationTest(unittest.TestCase):
    def test_buckets_are_registered_after_some_steps(self) -> None:
        self.assertEqual(results(2, buckets_while_training), [[True, False, True, True]] * 2)

    def test_buckets_are_registered_if_gradients_are_copies_of_them(self) -> None:
        self.assertEqual(results(2, buckets_of_copies), [[True, True]] * 2)

    def test_registration_ends_when_the_memory_is_freed(self) -> None:
        self.assertEqual(results(2, freed), [[True, True, False, True]] * 2)

    def test_a_forked_process_that_frees_its_model_does_not_affect_the_parent(self) -> None:
        self.assertEqual(results(2, freed_in_a_fork), [[True] * 4] * 2)

    def test_a_tensor_of_the_script_is_not_registered(self) -> None:
        self.assertEqual(results(2, held_by_the_script), [False, False])

    def test_buckets_of_an_ended_group_do_not_affect_the_next_group(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(results(2, in_the_next_group, folder), [[True] * 4] * 2)


if __name__ == "__main__":
    unittest.main()
