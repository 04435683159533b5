"""DistributedOptimizer, SyncBatchNorm and the state of optimizers on several ranks."""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Callable

from needs import import_torch

import_torch()

import torch

from horovod_ranks import results

STEPS = 50
BATCH = 12  # of all ranks together


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.second = torch.nn.Linear(8, 8)
        self.last = torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))
        return out


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
}

# name: (optimizer, keyword arguments, passes)
VARIANTS: dict[str, tuple[str, dict[str, Any], int]] = {
    **{name: (name, {}, 1) for name in OPTIMIZERS},
    "predivided": ("SGD", {"gradient_predivide_factor": 4.0}, 1),
    "three groups": ("Adam", {"groups": 3}, 1),
    "predivided groups": ("AdamW", {"groups": 2, "gradient_predivide_factor": 2.0}, 1),
    "accumulation": ("SGD", {"backward_passes_per_step": 2}, 2),
    "accumulation in groups": ("Adam", {"backward_passes_per_step": 2, "groups": 2}, 2),
    "mean of passes": ("Adam", {"backward_passes_per_step": 2, "average_aggregated_gradients": True}, 1),
    "one list": ("SGD", {"groups": "lists"}, 1),
}


def data(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, 6, generator=generator)
    return x, x.sum(1, keepdim=True).sin()


def train_alone(name: str, passes: int) -> list[float]:
    """One process on the global batch. Several passes add up."""
    torch.manual_seed(0)
    model = Net()
    optimizer = OPTIMIZERS[name](model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = data(step)
        (passes * (model(x) - y).square().mean()).backward()
        optimizer.step()
    return weights_of(model)


def weights_of(model: torch.nn.Module) -> list[float]:
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()


def train_together(name: str, options: dict[str, Any], _: int) -> list[float]:
    import peal.horovod as hvd

    torch.manual_seed(hvd.rank())
    model = Net()  # differs between ranks, and rank 0 has that of train_alone
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    if options.get("groups") == "lists":
        options = {**options, "groups": [list(model.first.parameters()), [model.last.weight]]}
    optimizer = hvd.DistributedOptimizer(OPTIMIZERS[name](model.parameters()), model.named_parameters(), **options)
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = (part[hvd.rank()::hvd.size()] for part in data(step))
        parts = options.get("backward_passes_per_step", 1)
        for part in range(parts):
            (model(x[part::parts]) - y[part::parts]).square().mean().backward()
        optimizer.step()
    return weights_of(model)


def train_variants() -> dict[str, list[float]]:
    import peal.horovod as hvd

    hvd.init()
    return {variant: train_together(*how) for variant, how in VARIANTS.items()}


class Rare(torch.nn.Module):
    """Each rank misses another parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(3)) for _ in range(4)])


def behave() -> dict[str, Any]:
    """What the class does in special cases, by name."""
    import peal.horovod as hvd

    hvd.init()
    rank = hvd.rank()
    seen: dict[str, Any] = {}

    def wrapped(model: torch.nn.Module, **options: Any) -> Any:
        return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters(),
                                        **options)

    for groups in (None, 2):
        model: Any = Rare()
        optimizer = wrapped(model, groups=groups)
        for i, p in enumerate(model.parts):
            if i not in (rank, 3):
                p.sum().backward()
        optimizer.step()
        seen[f"missing {groups}"] = [float(p.detach()[0]) for p in model.parts]

    model = torch.nn.Linear(2, 1, bias=False)
    optimizer = wrapped(model)
    model(torch.ones(1, 2)).sum().backward()
    for name, misuse in (("too many passes", lambda: model(torch.ones(1, 2)).sum().backward()),
                         ("zero_grad too early", optimizer.zero_grad)):
        try:
            misuse()
            seen[name] = "no error"
        except AssertionError as error:
            seen[name] = str(error)
    optimizer.step()  # still works
    optimizer.zero_grad()

    model(torch.ones(1, 2)).sum().backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    seen["step after synchronize"] = [str(one.message)[:60] for one in caught]

    hvd.broadcast_parameters(model.state_dict(), 0)
    before = model.weight.detach().clone()
    optimizer.zero_grad()
    (model(torch.full((1, 2), float(rank + 1))).sum()).backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    with optimizer.skip_synchronize():
        optimizer.step()
    seen["clipped"] = float((model.weight - before).detach().norm())

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.full((1, 2), float(rank))).sum()
        loss.backward()
        return loss

    before = model.weight.detach().clone()
    optimizer.step(closure)
    seen["closure"] = [round(value, 5) for value in (before - model.weight.detach()).flatten().tolist()]

    sparse = torch.nn.Embedding(5, 2, sparse=True)
    torch.nn.init.zeros_(sparse.weight)
    for name, options in (("sparse", {}), ("sparse as dense", {"sparse_as_dense": True})):
        torch.nn.init.zeros_(sparse.weight)
        optimizer = wrapped(sparse, **options)
        optimizer.zero_grad()
        sparse(torch.tensor([rank, rank, 4])).sum().backward()
        optimizer.step()
        seen[name] = sparse.weight.detach()[:, 0].tolist()

    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        torch.manual_seed(0)
        model = Net()
        optimizer = wrapped(model, compression=compression)
        model(torch.full((2, 6), float(rank))).sum().backward()
        optimizer.synchronize()
        seen[compression.__name__] = (
            model.last.weight.grad.dtype == torch.float32,
            hvd.allgather_object(weights_of_grads(model)))

    model = Net()
    first = wrapped(model)  # still there, but reduces no more
    optimizer = hvd.DistributedOptimizer(first, model.named_parameters())
    model(torch.ones(1, 6)).sum().backward()
    optimizer.step()
    seen["wrapped again"] = type(optimizer).__mro__[2].__name__
    extra = torch.nn.Parameter(torch.zeros(2))
    optimizer.zero_grad()
    optimizer.add_param_group({"params": [extra]})
    (extra * (rank + 1)).sum().backward()
    optimizer.step()
    seen["added group"] = extra.detach().tolist()
    return seen


def weights_of_grads(model: torch.nn.Module) -> list[float]:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).tolist()


def train_in_a_set() -> float:
    """Only ranks 0 and 2 are in the set of the optimizer."""
    import peal.horovod as hvd

    two = hvd.ProcessSet([0, 2])
    hvd.init(process_sets=[two])
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters(),
                                         process_set=two)
    (model(torch.full((1, 1), float(hvd.rank() + 1) ** 2))).sum().backward()
    optimizer.step()
    return float(model.weight.detach())


def train_with_scalers() -> list[Any]:
    import peal.horovod as hvd

    hvd.init()
    return [train_with_a_scaler(explicit) for explicit in (True, False)]


def train_with_a_scaler(explicit: bool) -> list[Any]:
    """The usual loop of mixed precision. In step 2 the gradient of rank 1 is infinite."""
    import peal.horovod as hvd

    model = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=100)
    seen = []
    for step in range(5):
        optimizer.zero_grad()
        scale = float("inf") if step == 2 and hvd.rank() == 1 else 1.0
        loss = (model(torch.full((1, 2), hvd.rank() + 1.0)) * scale).sum()
        scaler.scale(loss).backward()
        if explicit:
            optimizer.synchronize()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 100.0)
            with optimizer.skip_synchronize():
                scaler.step(optimizer)
        else:
            scaler.step(optimizer)
        scaler.update()
        seen.append((round(float(model.weight.detach()[0, 0]), 5), scaler.get_scale()))
    return seen


def adasum(deltas: list[torch.Tensor]) -> torch.Tensor:
    """The formula, for two ranks."""
    a, b = (delta.double() for delta in deltas)
    dot = (a * b).sum()
    return (1 - dot / (2 * (a * a).sum())) * a + (1 - dot / (2 * (b * b).sum())) * b


def train_by_adasum() -> dict[str, Any]:
    import peal.horovod as hvd

    hvd.init()
    torch.manual_seed(0)
    model = Net().double()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), model.named_parameters(),
                                         op=hvd.Adasum)
    torch.manual_seed(1 + hvd.rank())
    seen: dict[str, Any] = {"name": type(optimizer).__name__}
    difference = 0.0
    for _ in range(3):
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.zero_grad()
        model(torch.randn(4, 6, dtype=torch.float64)).sum().backward()
        # Backward computes and sends the change; the value stays until step().
        assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before))
        optimizer.step()
        for p, old in zip(model.parameters(), before):
            assert p.grad is not None  # this rank's
            expected = adasum([-0.5 * grad for grad in hvd.allgather(p.grad.unsqueeze(0))])
            difference = max(difference, float((p.detach() - old - expected).abs().max()))
    seen["difference"] = difference
    try:
        with optimizer.skip_synchronize():
            pass
    except AssertionError as error:
        seen["skip"] = str(error)
    optimizer.synchronize()
    seen["weights"] = weights_of(model)
    return seen


def send_states() -> dict[str, Any]:
    """broadcast_optimizer_state from rank 1 with states of several kinds."""
    import peal.horovod as hvd

    hvd.init()
    seen: dict[str, Any] = {}
    makers: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
        **OPTIMIZERS,
        "Adadelta": lambda p: torch.optim.Adadelta(p),
        "Rprop": lambda p: torch.optim.Rprop(p),
        "plain": lambda p: torch.optim.SGD(p, lr=0.1)}
    for name, make in makers.items():
        torch.manual_seed(0)
        model = Net()
        optimizer = make(model.parameters())
        if hvd.rank() == 1:
            optimizer.param_groups[0]["lr"] = 0.123
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.ones(2, 6)).sum().backward()
                optimizer.step()
        before = weights_of(model)
        groups = optimizer.param_groups
        hvd.broadcast_optimizer_state(optimizer, root_rank=1)
        state = [{key: (value.tolist() if isinstance(value, torch.Tensor) else value)
                  for key, value in optimizer.state[p].items()}
                 for p in model.parameters()] if optimizer.state else []
        options = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}
        seen[name] = (hvd.allgather_object(state), hvd.allgather_object(options),
                      {key: str(type(value)) for key, value in options.items()})
        assert weights_of(model) == before and optimizer.param_groups is groups
        grads = [p.grad for p in model.parameters()]
        assert all(grad is not None for grad in grads)
        if hvd.rank() == 0:
            assert all(float(grad.abs().sum()) == 0 for grad in grads if grad is not None)
    model = Net()
    try:
        hvd.broadcast_optimizer_state(torch.optim.LBFGS(model.parameters()), 0)
    except ValueError as error:
        seen["LBFGS"] = str(error)
    return seen


def normalize() -> dict[str, Any]:
    """SyncBatchNorm over unequal batches against BatchNorm over all samples."""
    import peal.horovod as hvd

    hvd.init()
    rank = hvd.rank()
    sizes = [3, 1, 4][:hvd.size()]
    seen: dict[str, Any] = {}
    for shape, momentum in (((5,), 0.1), ((5, 2, 3), None)):
        torch.manual_seed(0)
        every = torch.randn(sum(sizes), *shape, dtype=torch.float64)
        scale = torch.randn_like(every)
        begin = sum(sizes[:rank])
        own = every[begin:begin + sizes[rank]].clone().requires_grad_()
        all_of_them = every.clone().requires_grad_()
        ours: Any = hvd.SyncBatchNorm(5, momentum=momentum).double()
        kind = torch.nn.BatchNorm1d if len(shape) == 1 else torch.nn.BatchNorm2d
        theirs: Any = kind(5, momentum=momentum).double()
        for module in (ours, theirs):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5, generator=torch.Generator().manual_seed(1))
        for _ in range(2):
            a = ours(own)
            b = theirs(all_of_them)
        (a * scale[begin:begin + sizes[rank]]).sum().backward()
        (b * scale).sum().backward()
        weight = hvd.allreduce(ours.weight.grad, op=hvd.Sum)
        bias = hvd.allreduce(ours.bias.grad, op=hvd.Sum)
        ours.eval()
        theirs.eval()
        differences = [a - b[begin:begin + sizes[rank]], own.grad - all_of_them.grad[begin:begin + sizes[rank]],
                       ours.running_mean - theirs.running_mean, ours.running_var - theirs.running_var,
                       weight - theirs.weight.grad, bias - theirs.bias.grad,
                       ours(own) - theirs(all_of_them)[begin:begin + sizes[rank]],
                       ours.num_batches_tracked - theirs.num_batches_tracked]
        seen[str(shape)] = [float(one.abs().max()) for one in differences]
    return seen


class TrainingTest(unittest.TestCase):
    def test_it_equals_one_process_on_the_global_batch(self) -> None:
        for ranks in (2, 3):
            every = results(ranks, train_variants)
            for variant, (name, _, passes) in VARIANTS.items():
                alone = torch.tensor(train_alone(name, passes))
                for rank in range(ranks):
                    with self.subTest(ranks=ranks, variant=variant, rank=rank):
                        difference = (torch.tensor(every[rank][variant]) - alone).abs().max()
                        self.assertLessEqual(float(difference), 1e-5)

    def test_special_cases(self) -> None:
        for rank, seen in enumerate(results(2, behave)):
            with self.subTest(rank=rank):
                # Part 0 has a gradient on rank 1 only, part 1 on rank 0 only, part 3 on no rank.
                self.assertEqual(seen["missing None"], [0.5, 0.5, 0.0, 1.0])
                self.assertEqual(seen["missing 2"], [0.5, 0.5, 0.0, 1.0])
                self.assertIn("Gradients were computed more than backward_passes_per_step",
                              seen["too many passes"])
                self.assertIn("optimizer.zero_grad() was called after loss.backward()",
                              seen["zero_grad too early"])
                self.assertEqual(seen["step after synchronize"],
                                 ["optimizer.step() called without optimizer.skip_synchronize()"])
                self.assertAlmostEqual(seen["clipped"], 1e-3, places=6)
                self.assertEqual(seen["closure"], [0.5, 0.5])
                for name in ("sparse", "sparse as dense"):
                    self.assertEqual(seen[name], [-1.0, -1.0, 0.0, 0.0, -1.0], name)
                for name in ("FP16Compressor", "BF16Compressor"):
                    is_wide, (first, second) = seen[name]
                    self.assertTrue(is_wide)
                    self.assertEqual(first, second)
                self.assertEqual(seen["wrapped again"], "Wrapper")
                self.assertEqual(seen["added group"], [-1.5, -1.5])

    def test_only_the_ranks_of_a_set_average(self) -> None:
        self.assertEqual(results(3, train_in_a_set), [-5.0, -4.0, -5.0])

    def test_a_step_that_a_scaler_skips_is_skipped_by_all_ranks(self) -> None:
        for ways in results(2, train_with_scalers):
            for seen in ways:
                self.assertEqual(seen, [(0.85, 4.0), (0.7, 4.0), (0.7, 2.0), (0.55, 2.0), (0.4, 2.0)])

    def test_adasum_combines_the_changes_of_the_parameters(self) -> None:
        first, second = results(2, train_by_adasum)
        self.assertEqual(first["weights"], second["weights"])
        self.assertEqual(first["name"], "SGD")
        self.assertLess(max(first["difference"], second["difference"]), 1e-12)
        self.assertIn("Skipping synchronization is not supported", first["skip"])

    def test_the_state_of_an_optimizer_travels_without_a_step(self) -> None:
        for seen in results(2, send_states):
            self.assertEqual(seen.pop("LBFGS"), "cannot broadcast torch.optim.LBFGS state")
            for name, ((first, second), (options, others), types) in seen.items():
                with self.subTest(name):
                    self.assertEqual(first, second)
                    self.assertEqual(bool(first), name != "plain")
                    self.assertEqual(options, others)
                    self.assertEqual(options["lr"], 0.123)
                    self.assertEqual(types["lr"], "<class 'float'>")
                    if name == "Adam":
                        self.assertEqual(types["betas"], "<class 'tuple'>")
                        self.assertEqual([one["step"] for one in first], [3.0] * 6)

    def test_batch_normalization_over_unequal_batches(self) -> None:
        for seen in results(3, normalize):
            for shape, differences in seen.items():
                self.assertLess(max(differences), 1e-9, (shape, differences))


if __name__ == "__main__":
    unittest.main()
