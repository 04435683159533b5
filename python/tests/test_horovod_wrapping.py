"""DistributedOptimizer on one rank: it must behave as the optimizer itself."""

from __future__ import annotations

import os
import unittest
import warnings
from typing import Any
from unittest import mock

from needs import import_torch

import_torch()

import torch

import peal.horovod as hvd

from horovod_ranks import JobOfOneTest


class WrappingTest(JobOfOneTest):
    def setUp(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def step(self, optimizer: Any) -> None:
        optimizer.zero_grad()
        self.model(torch.ones(4, 3)).square().mean().backward()
        optimizer.step()

    def test_it_keeps_class_state_and_param_groups(self) -> None:
        self.step(self.optimizer)
        wrapped = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters())
        self.assertEqual(type(wrapped).__name__, "SGD")
        self.assertIsInstance(wrapped, torch.optim.SGD)
        self.assertIs(wrapped.param_groups[0], self.optimizer.param_groups[0])
        self.assertEqual(len(wrapped.state), 2)
        self.assertEqual(set(wrapped._parameter_names.values()), {"weight", "bias"})
        wrapped.load_state_dict(wrapped.state_dict())
        self.assertIs(wrapped.param_groups[0], self.optimizer.param_groups[0])
        wrapped.zero_grad(set_to_none=False)
        self.assertIsNotNone(self.model.weight.grad)
        wrapped.zero_grad()
        self.assertIsNone(self.model.weight.grad)

    def test_schedulers_from_before_and_after_act_without_a_warning(self) -> None:
        before = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.5)
        wrapped = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters())
        after = torch.optim.lr_scheduler.StepLR(wrapped, 1, gamma=0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.step(wrapped)
            before.step()
            after.step()
        self.assertAlmostEqual(wrapped.param_groups[0]["lr"], 0.025)

    def test_a_scheduler_from_before_does_not_hide_the_distributed_step(self) -> None:
        torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        wrapped = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters())
        with mock.patch.object(type(wrapped), "synchronize") as synchronize:
            self.step(wrapped)
        synchronize.assert_called_once_with()

    def test_hooks_of_torch_run_once_for_each_step(self) -> None:
        calls: list[str] = []
        self.optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
        wrapped = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters())
        wrapped.register_step_post_hook(lambda *_: calls.append("post"))
        wrapped.load_state_dict(wrapped.state_dict())  # patches `step` in torch
        self.step(wrapped)
        self.assertEqual(calls, ["pre", "post"])

    def test_an_elastic_job_of_one_rank_reduces_too(self) -> None:
        with mock.patch.dict(os.environ, HOROVOD_ELASTIC="1"):
            wrapped = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters())
        self.assertEqual(len(wrapped._hooked), 2)
        self.step(wrapped)
        self.model(torch.ones(4, 3)).sum().backward()
        with self.assertRaisesRegex(AssertionError, "called after loss.backward"):
            wrapped.zero_grad()
        wrapped.load_state_dict(wrapped.state_dict())  # drops the reductions
        self.step(wrapped)

    def test_the_predivide_factor_is_applied_before_and_after_the_sum_in_groups_too(self) -> None:
        from peal.horovod import optimizer as module

        for groups, name in ((None, "allreduce_async"), (1, "grouped_allreduce_async")):
            with mock.patch.dict(os.environ, HOROVOD_ELASTIC="1"):
                wrapped = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters(), groups=groups,
                                                   gradient_predivide_factor=4.0)
            with mock.patch.object(module.hvd, name, wraps=getattr(module.hvd, name)) as reduction:
                self.step(wrapped)
            self.assertEqual({call.args[4:6] for call in reduction.call_args_list}, {(0.25, 4.0)})

    def test_names_of_parameters_that_have_none(self) -> None:
        wrapped = hvd.DistributedOptimizer(torch.optim.SGD(
            [{"params": [self.model.weight]}, {"params": [self.model.bias]}], lr=0.1))
        self.assertEqual(wrapped._parameter_names[self.model.weight], "allreduce.noname.0.0")
        self.assertEqual(wrapped._parameter_names[self.model.bias], "allreduce.noname.1.0")

    def test_wrong_arguments_are_value_errors(self) -> None:
        weight, bias = self.model.weight, self.model.bias
        names = [("weight", weight), ("bias", bias)]
        for arguments, words in (
                ({"named_parameters": [weight, bias]}, "sequence of tuples"),
                ({"named_parameters": [(1, weight), (2, bias)]}, "sequence of tuples"),
                ({"named_parameters": [("w", weight), ("w", bias)]}, "must be unique. Found duplicates: w"),
                ({"named_parameters": names[:1]},
                 r"were not named: param_groups\[0\]\['params'\]\[1\] of shape \(2,\)"),
                ({"groups": 0}, "groups should be a positive integer or a list"),
                ({"groups": "ab"}, "groups should be a positive integer or a list"),
                ({"groups": [["weight"]]}, "groups must consist of torch.Tensor"),
                ({"groups": [[weight], [weight]]}, "A parameter can only appear once in groups."),
                ({"backward_passes_per_step": 0}, "backward_passes_per_step must be > 0"),
                ({"gradient_predivide_factor": 2.0, "op": hvd.Sum}, "gradient_predivide_factor not supported")):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                hvd.DistributedOptimizer(self.optimizer, **{"named_parameters": names, **arguments})
        with self.assertWarns(DeprecationWarning):
            hvd.DistributedOptimizer(self.optimizer, names, num_groups=1)

    def test_a_step_after_synchronize_warns_once_for_each_step(self) -> None:
        wrapped = hvd.DistributedOptimizer(self.optimizer, self.model.named_parameters())
        for _ in range(2):
            wrapped.synchronize()
            with self.assertWarnsRegex(UserWarning, "called without optimizer.skip_synchronize"):
                self.step(wrapped)
        wrapped.synchronize()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with wrapped.skip_synchronize():
                self.step(wrapped)
            self.step(wrapped)


if __name__ == "__main__":
    unittest.main()
