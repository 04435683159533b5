"""Hooks of parameters under peal.DistributedDataParallel: as under torch's, whenever they are registered."""

from __future__ import annotations

import unittest
from typing import Any

import ranks
from needs import import_torch

import_torch()

import torch
import torch.distributed as dist
from torch import nn

import peal


def _double(gradient: torch.Tensor) -> torch.Tensor:
    return gradient * 2


def _observe(_gradient: torch.Tensor) -> None:
    pass


def _gradients(kind: str, when: str, hook: Any) -> list[list[float]]:
    """The gradients of three passes. The parameter's hook is registered at `when`."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    weight: Any = net[0].weight
    if when == "before":
        weight.register_hook(hook)
    model = (peal.DistributedDataParallel if kind == "peal" else nn.parallel.DistributedDataParallel)(net)
    handle = None
    seen = []
    for step in range(3):
        model.zero_grad()
        if when == "after" and step == 0 or when == "later" and step == 1:
            handle = weight.register_hook(hook)
        if when == "after" and step == 2 and handle is not None:
            handle.remove()
        model(torch.full((1, 2), dist.get_rank() + step + 1.0)).sum().backward()
        seen.append([value for parameter in net.parameters() for value in parameter.grad.flatten().tolist()])
        if step == 0:
            weight.data = weight.data.clone()  # torch replaces what its hooks of nodes are on
    return seen


def _optimizer_in_backward(when: str) -> str:
    from torch.distributed.optim import _apply_optimizer_in_backward
    net = nn.Linear(2, 1)
    if when == "after":
        model = peal.DistributedDataParallel(net)
    _apply_optimizer_in_backward(torch.optim.SGD, net.parameters(), {"lr": 0.1})
    if when == "before":
        model = peal.DistributedDataParallel(net)
    try:
        model(torch.ones(1, 2)).sum().backward()
    except peal.Error as error:
        return str(error)
    return "no error"


class ParameterHooks(unittest.TestCase):
    def test_gradients_are_those_of_torch_on_gloo(self) -> None:
        for when in ("before", "after", "later"):
            for hook in (_double, _observe):
                with self.subTest(when=when, hook=hook.__name__):
                    expected = ranks.results(2, _gradients, "torch", when, hook, backend="gloo")
                    actual = ranks.results(2, _gradients, "peal", when, hook)
                    for rank in range(2):
                        torch.testing.assert_close(torch.tensor(actual[rank]), torch.tensor(expected[rank]))

    def test_an_optimizer_in_backward_is_refused_with_the_name_of_its_parameter(self) -> None:
        for when in ("before", "after"):
            for text in ranks.results(2, _optimizer_in_backward, when):
                self.assertIn("weight has an optimizer that steps inside backward", text)


if __name__ == "__main__":
    unittest.main()
