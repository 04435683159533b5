"""Communication hooks of peal.DistributedDataParallel."""

from __future__ import annotations

import unittest
from typing import Any

import ranks
from needs import import_torch, numpy_wanted

import_torch()

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

import peal


def _model(**options: Any) -> Any:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return peal.DistributedDataParallel(net, **options)


def _backward(model: Any) -> None:
    batch = torch.randn(6, 16, generator=torch.Generator().manual_seed(dist.get_rank()))
    model(batch).square().mean().backward()


def _bf16(hooked: bool) -> list[float]:
    model = _model()
    if hooked:
        model.register_comm_hook(dist.group.WORLD, default_hooks.bf16_compress_hook)
    _backward(model)
    return [p.grad.abs().max().item() for p in model.parameters()]


def _parameters_with_power_sgd() -> list[float]:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    model = _model(bucket_cap_mb=0.001)
    state = powerSGD_hook.PowerSGDState(dist.group.WORLD, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        _backward(model)
        optimizer.step()
    return [p.sum().item() for p in model.parameters()]


class Results(unittest.TestCase):
    def test_a_bf16_hook_works_on_the_cpu(self) -> None:
        plain, hooked = ranks.results(2, _bf16, False), ranks.results(2, _bf16, True)
        torch.testing.assert_close(torch.tensor(hooked), torch.tensor(plain), rtol=0.02, atol=0.02)

    @numpy_wanted  # by torch's PowerSGD
    def test_a_hook_that_starts_collectives_in_callbacks_works_with_many_buckets(self) -> None:
        a, b = ranks.results(2, _parameters_with_power_sgd)
        self.assertEqual(a, b)


def _raise_key_error(_future: Any = None) -> Any:
    raise KeyError("a fault in the hook")


def _error_with(result_of: Any) -> tuple[str, str]:
    """The class and text that leave backward() if the hook returns `result_of(bucket)`."""

    def hook(_state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        result: torch.futures.Future[torch.Tensor] = result_of(bucket)
        return result

    model = _model()
    model.register_comm_hook(None, hook)
    try:
        _backward(model)
    except Exception as error:
        return getattr(error, "kind", type(error).__name__), str(error)
    return "no error", ""


def _ended(value: Any) -> Any:
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(value)
    return future


def _raises_in_callback(bucket: dist.GradBucket) -> Any:
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(_raise_key_error)


def _is_no_future(bucket: dist.GradBucket) -> Any:
    return bucket.buffer()


def _has_no_tensor(bucket: dist.GradBucket) -> Any:
    return _ended([bucket.buffer()])


def _has_another_size(bucket: dist.GradBucket) -> Any:
    return _ended(bucket.buffer()[1:])


def _two_hooks() -> None:
    model = _model()
    for _ in range(2):
        model.register_comm_hook(dist.group.WORLD, default_hooks.allreduce_hook)


class Errors(unittest.TestCase):
    def assert_error(self, result_of: Any, kind: str, *words: str) -> None:
        for found, text in ranks.results(2, _error_with, result_of):
            self.assertEqual(found, kind)
            for word in words:
                self.assertIn(word, text)

    def test_an_exception_of_a_hook_leaves_backward(self) -> None:
        self.assert_error(_raise_key_error, "KeyError", "a fault in the hook")
        self.assert_error(_raises_in_callback, "RuntimeError", "a fault in the hook")

    def test_a_wrong_result_of_a_hook_is_named(self) -> None:
        self.assert_error(_is_no_future, "RuntimeError", "must return a torch.futures.Future object")
        self.assert_error(_has_no_tensor, "usage", "the communication hook holds a list")
        self.assert_error(_has_another_size, "usage", "a tensor of shape [", "for a bucket of shape [")

    def test_the_second_hook_is_refused(self) -> None:
        for outcome in ranks.outcomes(1, _two_hooks):
            self.assertIn("only be called once", outcome.error or "no error")


if __name__ == "__main__":
    unittest.main()
