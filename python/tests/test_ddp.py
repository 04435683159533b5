"""peal.DistributedDataParallel gives the results of torch's."""

from __future__ import annotations

import gc
import io
import unittest
import weakref
from typing import Any, Callable

import ranks
from needs import import_torch, numpy_wanted

import_torch()

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

import peal

TorchDDP = nn.parallel.DistributedDataParallel


class Net(nn.Module):
    """Convolution, batch norm, two layers of which `second` is optional."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.first = nn.Linear(4 * 36, 16)
        self.second = nn.Linear(16, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, use_second: bool = True, checkpointed: bool = False) -> Any:
        x = self.first(torch.relu(self.norm(self.conv(x))).flatten(1))
        if use_second:
            x = (checkpoint(self.second, x, use_reentrant=True) if checkpointed else self.second(x))
        return self.out(torch.relu(x))


def _wrap(kind: str, net: nn.Module, **options: Any) -> Any:
    if kind == "peal":
        return peal.DistributedDataParallel(net, **options)
    return TorchDDP(net, **options)


def _batch(rank: int, step: int, size: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1000 * rank + step)
    return (torch.randn(size, 1, 8, 8, generator=random),
            torch.randint(4, (size,), generator=random))


def _net() -> Net:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    return Net()


def _train(kind: str, options: dict[str, Any], step: Callable[[Any, int], None] | None = None,
           steps: int = 50) -> list[list[float]]:
    """The losses, and the sum and the largest element of all gradients, of each step."""
    model = _wrap(kind, _net(), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    seen = []
    for i in range(steps):
        optimizer.zero_grad()
        if step is not None:
            step(model, i)
        x, y = _batch(dist.get_rank(), i)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        gradients = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        seen.append([loss.item(), gradients.sum().item(), gradients.abs().max().item()])
        optimizer.step()
    return seen


def _losses(kind: str, steps: int) -> list[float]:
    return [loss for loss, *_ in _train(kind, {}, None, steps)]


def _accumulate(model: Any, step: int) -> None:
    with model.no_sync():
        x, y = _batch(dist.get_rank(), 500 + step)
        nn.functional.cross_entropy(model(x), y).backward()


class SameAsTorch(unittest.TestCase):
    def assert_same(self, function: Callable[..., Any], *arguments: Any, size: int = 2,
                    tolerance: float = 1e-5) -> None:
        expected = ranks.results(size, function, "torch", *arguments, backend="gloo")
        actual = ranks.results(size, function, "peal", *arguments)
        for rank in range(size):
            torch.testing.assert_close(torch.tensor(actual[rank]), torch.tensor(expected[rank]),
                                       rtol=tolerance, atol=tolerance)

    def test_losses_and_gradients_are_those_of_torch_on_gloo(self) -> None:
        self.assert_same(_train, {})

    def test_three_ranks_have_the_losses_of_torch_on_gloo(self) -> None:
        # torch divides before it adds, so the last bit of a mean differs.
        self.assert_same(_losses, 30, size=3)

    def test_small_buckets_and_a_static_graph_give_the_same(self) -> None:
        self.assert_same(_train, {"bucket_cap_mb": 0.001}, None, 10)
        self.assert_same(_train, {"static_graph": True}, None, 10)

    def test_accumulation_by_no_sync_gives_the_same(self) -> None:
        self.assert_same(_train, {}, _accumulate, 10)
        self.assert_same(_train, {"gradient_as_bucket_view": True}, _accumulate, 10)

    def test_join_gives_the_same(self) -> None:
        for divide_by_all in (True, False):
            self.assert_same(_train_joined, divide_by_all)

    def test_hooks_of_torch_give_the_same(self) -> None:
        for name in ("allreduce_hook", "fp16_compress_hook"):
            self.assert_same(_train_with_hook, name, 0.001, tolerance=2e-4)

    @numpy_wanted  # by torch's PowerSGD
    def test_power_sgd_of_torch_gives_the_same(self) -> None:
        # With several buckets, torch starts collectives of this hook in an order that differs
        # between ranks.
        self.assert_same(_train_with_hook, "powerSGD_hook", 25, tolerance=2e-4)

    def test_state_dict_has_the_same_keys(self) -> None:
        self.assertEqual(ranks.results(2, _keys, "peal"),
                         ranks.results(2, _keys, "torch", backend="gloo"))


def _step(model: Any, optimizer: torch.optim.Optimizer, step: int) -> float:
    """A step on this rank's batch; returns the loss."""
    optimizer.zero_grad()
    x, y = _batch(dist.get_rank(), step)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def _train_joined(kind: str, divide_by_all: bool) -> list[float]:
    model = _wrap(kind, _net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with model.join(divide_by_initial_world_size=divide_by_all):
        losses = [_step(model, optimizer, i) for i in range(4 + 3 * dist.get_rank())]
    return losses + [p.sum().item() for p in model.parameters()]


def _train_with_hook(kind: str, name: str, cap: float) -> list[float]:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    model = _wrap(kind, _net(), bucket_cap_mb=cap)
    if name == "powerSGD_hook":
        state = powerSGD_hook.PowerSGDState(dist.group.WORLD, start_powerSGD_iter=3)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    else:
        model.register_comm_hook(dist.group.WORLD, getattr(default_hooks, name))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return [_step(model, optimizer, i) for i in range(8)]


def _keys(kind: str) -> list[str]:
    return list(_wrap(kind, _net()).state_dict())


class Beyond(unittest.TestCase):
    """What torch's DistributedDataParallel does not do, or only with options."""

    def test_it_is_a_ddp_for_libraries_that_ask(self) -> None:
        self.assertEqual(ranks.results(2, _is_ddp), [True, True])

    def test_unused_parameters_are_no_error_and_keep_their_gradients(self) -> None:
        for gradients in ranks.results(2, _unused):
            self.assertEqual(gradients, [True, None, 7.0])

    def test_a_reentrant_checkpoint_gives_the_gradients_of_the_plain_module(self) -> None:
        plain, checkpointed = (ranks.results(2, _gradients, flag) for flag in (False, True))
        for a, b in zip(plain, checkpointed):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b))

    def test_a_weighted_average_is_that_of_one_process_on_all_samples(self) -> None:
        expected = _weighted_alone()
        for gradients in ranks.results(2, _weighted):
            torch.testing.assert_close(torch.tensor(gradients), torch.tensor(expected))

    def test_one_rank_may_evaluate_alone_with_the_buffers_of_all(self) -> None:
        a, b = ranks.results(2, _evaluated)
        self.assertEqual(a, b)

    def test_default_zero_grad_keeps_gradients_in_place(self) -> None:
        for places in ranks.results(2, _places):
            self.assertEqual(len(set(places)), 1)

    def test_a_pickled_model_trains_on(self) -> None:
        a, b = ranks.results(2, _pickled)
        self.assertEqual(a, b)

    def test_a_model_that_is_dropped_is_freed(self) -> None:
        self.assertEqual(ranks.results(2, _is_freed), [True, True])
        self.assertEqual(ranks.results(2, _is_freed_with_cycles), [True, True])

    def test_an_exception_in_forward_leaves_the_model_usable(self) -> None:
        a, b = ranks.results(2, _after_exception)
        self.assertEqual(a, b)


def _is_ddp() -> bool:
    return isinstance(peal.DistributedDataParallel(_net()), TorchDDP)


def _unused() -> list[Any]:
    net = _net()
    model = peal.DistributedDataParallel(net)
    seen: list[Any] = []
    model(_batch(0, 0)[0], use_second=dist.get_rank() == 0).sum().backward()
    seen.append(net.second.bias.grad is not None)
    model.zero_grad()
    model(_batch(0, 0)[0], use_second=False).sum().backward()
    seen.append(net.second.bias.grad)
    net.second.bias.grad = torch.full_like(net.second.bias, 7.0)
    model(_batch(0, 0)[0], use_second=False).sum().backward()
    seen.append(net.second.bias.grad[0].item())
    return seen


def _gradients(checkpointed: bool) -> list[float]:
    model = peal.DistributedDataParallel(_net(), bucket_cap_mb=0.001)
    for _ in range(3):
        model.zero_grad()
        model(_batch(dist.get_rank(), 0)[0], checkpointed=checkpointed).square().sum().backward()
    return [p.grad.sum().item() for p in model.parameters()]


def _weighted() -> list[float]:
    net = _net()
    net.norm.eval()
    model = peal.DistributedDataParallel(net, average="samples")
    for _ in range(2):
        model.zero_grad()
        x, y = _batch(dist.get_rank(), 0, size=2 + 5 * dist.get_rank())
        nn.functional.cross_entropy(model(x), y).backward()
    return [p.grad.sum().item() for p in model.parameters()]


def _weighted_alone() -> list[float]:
    net = _net()
    net.norm.eval()
    batches = [_batch(rank, 0, size=2 + 5 * rank) for rank in range(2)]
    x, y = (torch.cat(parts) for parts in zip(*batches))
    nn.functional.cross_entropy(net(x), y).backward()
    return [p.grad.sum().item() for p in net.parameters()]


def _evaluated() -> float:
    model = peal.DistributedDataParallel(_net())
    x, y = _batch(dist.get_rank(), 0)
    nn.functional.cross_entropy(model(x), y).backward()
    model.eval()
    value = 0.0
    with torch.no_grad():
        for turn in range(2):  # one rank after the other
            if dist.get_rank() == turn:
                value = model(_batch(9, 9)[0]).sum().item()
            dist.barrier()
    return value


def _places() -> list[int]:
    model = peal.DistributedDataParallel(_net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for i in range(4):
        optimizer.zero_grad()
        model(_batch(0, i)[0]).sum().backward()
        seen.append(model.module.conv.weight.grad.data_ptr())
    return seen


def _pickled() -> float:
    file = io.BytesIO()
    torch.save(peal.DistributedDataParallel(_net()), file)
    file.seek(0)
    model = torch.load(file, weights_only=False)
    model(_batch(dist.get_rank(), 0)[0]).sum().backward()
    total: float = sum(p.grad.sum().item() for p in model.parameters())
    return total


def _is_freed() -> bool:
    net = _net()
    model = peal.DistributedDataParallel(net)
    model(_batch(0, 0)[0]).sum().backward()
    reference = weakref.ref(model)
    del model
    gc.collect()
    return reference() is None


def _is_freed_with_cycles() -> bool:
    """The hook, its state and the module refer to the model."""
    net = _net()
    model = peal.DistributedDataParallel(net)

    def hook(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        assert state is model
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(
            lambda future: future.value()[0] / dist.get_world_size())

    model.register_comm_hook(model, hook)
    net.__dict__["wrapped"] = model
    model(_batch(0, 0)[0]).sum().backward()
    references = [weakref.ref(model), weakref.ref(net)]
    del net, model, hook
    gc.collect()
    return all(reference() is None for reference in references)


def _after_exception() -> float:
    model = peal.DistributedDataParallel(_net())
    x = _batch(dist.get_rank(), 0)[0]
    try:
        model(x.flatten(1))
    except RuntimeError:
        model(x).sum().backward()
    total: float = model.module.first.weight.grad.sum().item()
    return total


class Errors(unittest.TestCase):
    def test_usage_errors_of_the_reducer_are_peal_errors_in_backward(self) -> None:
        for function in (_used_twice, _without_samples):
            for kind in ranks.results(2, function):
                self.assertEqual(kind, "usage")

    def assert_raises(self, function: Callable[..., Any], *words: str, backend: str = "peal",
                      size: int = 2) -> None:
        for outcome in ranks.outcomes(size, function, backend=backend):
            for word in words:
                self.assertIn(word, outcome.error or "no error")

    def test_a_group_of_another_backend_is_unsupported(self) -> None:
        self.assert_raises(_plain, "backend \"peal\"", "\"gloo\"", backend="gloo")

    def test_a_lost_rank_is_a_peal_error_in_backward(self) -> None:
        self.assertEqual(ranks.outcomes(2, _lost)[0].result, "peer_lost")

    def test_modules_that_differ_are_a_mismatch_that_names_the_parameter(self) -> None:
        self.assert_raises(_different, "weight", "rank 0", "rank 1")

    def test_arguments_without_a_meaning_are_refused(self) -> None:
        self.assert_raises(_with_devices, "device_ids", size=1)
        self.assert_raises(_with_mixed_precision, "mixed_precision", size=1)
        self.assert_raises(_frozen, "requires a gradient", size=1)
        self.assert_raises(_unknown_average, "\"median\"", "\"samples\"", size=1)
        self.assert_raises(_lazy, "weight", "forward pass", size=1)

def _plain() -> None:
    peal.DistributedDataParallel(_net())


def _lost() -> str:
    model = peal.DistributedDataParallel(_net())
    if dist.get_rank() == 1:
        return "left"
    try:
        model(_batch(0, 0)[0]).sum().backward()
    except peal.Error as error:
        return error.kind
    return "no error"


def _different() -> None:
    peal.DistributedDataParallel(nn.Linear(2, 2 + dist.get_rank()))


def _with_devices() -> None:
    peal.DistributedDataParallel(_net(), device_ids=[0])


def _with_mixed_precision() -> None:
    peal.DistributedDataParallel(_net(), mixed_precision=object())


def _frozen() -> None:
    peal.DistributedDataParallel(_net().requires_grad_(False))


def _unknown_average() -> None:
    peal.DistributedDataParallel(_net(), average="median")


def _lazy() -> None:
    peal.DistributedDataParallel(nn.LazyLinear(2))


def _kind_of_error(backward: Callable[[], None]) -> str:
    try:
        backward()
    except peal.Error as error:
        return error.kind
    return "no error"


def _used_twice() -> str:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> Any:
            for _ in range(2):
                x = checkpoint(self.layer, x, use_reentrant=True)
            return x

    model = peal.DistributedDataParallel(Twice(), bucket_cap_mb=1e-6)
    loss = model(torch.ones(1, 4, requires_grad=True)).sum()
    return _kind_of_error(loss.backward)


def _without_samples() -> str:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self) -> Any:
            return self.weight * 2

    model = peal.DistributedDataParallel(Constant(), average="samples")
    return _kind_of_error(model().sum().backward)


if __name__ == "__main__":
    unittest.main()
