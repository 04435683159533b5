"""States, the loop and the sampler of peal.horovod.elastic, without other ranks."""

from __future__ import annotations

import contextlib
import random
import unittest
from typing import Any, Iterator
from unittest import mock

from needs import import_torch

import_torch()

import torch

import peal.horovod as hvd
from peal.horovod import assignment
from peal.horovod.elastic import common, rounds, sampler
from peal.horovod.elastic import state as states

from horovod_ranks import JobOfOneTest, results


@contextlib.contextmanager
def placed(rank: int, size: int) -> Iterator[None]:
    """The sampler is that of this rank."""
    with mock.patch.multiple(sampler, rank=lambda: rank, size=lambda: size, is_initialized=lambda: True):
        yield


def samplers_of(size: int, count: int, state: dict[str, Any] | None, **options: Any) -> list[Any]:
    made = []
    for rank in range(size):
        with placed(rank, size):
            one = hvd.elastic.ElasticSampler(range(count), **options)
            if state is not None:
                one.load_state_dict(state)
            made.append(one)
    return made


class SamplerTest(unittest.TestCase):
    def test_no_sample_is_lost_or_repeated_over_random_changes_of_the_ranks(self) -> None:
        for seed in range(300):
            choose = random.Random(seed)
            count, batch = choose.randrange(1, 60), choose.randrange(1, 5)
            epoch = choose.randrange(3)
            used: list[int] = []
            state = {"epoch": epoch, "processed_num": 0}
            while state["processed_num"] < count:
                ranks = samplers_of(choose.randrange(1, 6), count, state, seed=7)
                parts = [list(one) for one in ranks]
                self.assertEqual({len(part) for part in parts}, {len(ranks[0])})
                committed: list[int] = []
                for step in range(choose.randrange(1, 6)):
                    rows = [part[step * batch:(step + 1) * batch] for part in parts]
                    for one, row in zip(ranks, rows):
                        one.record_batch(step, len(row))
                    # In the order of the epoch: the samples of a step lie side by side.
                    committed += [row[i] for i in range(len(rows[0])) for row in rows]
                    if choose.random() < 0.3:
                        break  # the hosts change, or a rank is lost after this commit
                new = ranks[0].state_dict()
                self.assertTrue(all(one.state_dict() == new for one in ranks))
                used += committed[:new["processed_num"] - state["processed_num"]]
                if committed:
                    self.assertGreaterEqual(new["processed_num"], state["processed_num"])
                state = new
            self.assertEqual(sorted(used), list(range(count)), f"seed {seed}")
            order = list(range(count))
            random.Random(7 + epoch).shuffle(order)
            self.assertEqual(used, order, f"seed {seed}")

    def test_padding_repeats_samples_as_often_as_needed(self) -> None:
        parts = [list(one) for one in samplers_of(5, 2, None, shuffle=False)]
        self.assertEqual(parts, [[0], [1], [0], [1], [0]])

    def test_a_state_may_be_restored_while_there_are_no_ranks(self) -> None:
        with placed(0, 2):
            one = hvd.elastic.ElasticSampler(range(8), shuffle=False)
        with mock.patch.multiple(sampler, is_initialized=lambda: False):
            one.load_state_dict({"epoch": 0, "processed_num": 4})
        self.assertEqual(one.state_dict(), {"epoch": 0, "processed_num": 4})

    def test_an_empty_remainder_is_legal(self) -> None:
        for one in samplers_of(3, 4, {"epoch": 0, "processed_num": 4}):
            self.assertEqual(list(one), [])
            self.assertEqual(len(one), 0)

    def test_an_epoch_begins_with_all_samples_in_another_order(self) -> None:
        with placed(0, 1):
            one = hvd.elastic.ElasticSampler(range(20))
            first = list(one)
            one.record_batch(0, 20)
            one.set_epoch(1)
            self.assertEqual(one.state_dict(), {"epoch": 1, "processed_num": 0})
            self.assertNotEqual(list(one), first)
            self.assertEqual(sorted(one), list(range(20)))


def local_state(**values: Any) -> common.ObjectState:
    """A state whose broadcasts stay on this rank."""
    return common.ObjectState(lambda obj: obj, lambda: 0, **values)


class StateTest(unittest.TestCase):
    def test_a_list_that_is_changed_in_place_is_restored(self) -> None:
        state: Any = local_state(seen=[1], epoch=0)
        state.seen.append(2)
        state.epoch = 3
        state.save()
        for _ in range(2):
            state.seen.append(4)
            state.epoch = 9
            state.restore()
            self.assertEqual((state.seen, state.epoch), ([1, 2], 3))

    def test_the_arguments_of_the_program_are_copied(self) -> None:
        given = [1]
        state: Any = local_state(seen=given)
        given.append(2)
        state.restore()
        self.assertEqual(state.seen, [1])

    def test_synchronizing_takes_the_present_values_and_saves_them(self) -> None:
        state: Any = common.ObjectState(lambda obj: {**obj, "batch": 5}, lambda: 1, batch=0, epoch=0)
        state.epoch = 2
        state.sync()
        state.epoch = 7
        state.restore()
        self.assertEqual((state.batch, state.epoch), (5, 2))

    def test_news_of_hosts_interrupt_a_commit(self) -> None:
        for change, skips in ((1, False), (2, True), (3, False)):
            state = local_state(epoch=0)
            state.commit()
            state.on_hosts_updated(1.0, change)
            with self.assertRaises(hvd.HostsUpdatedInterrupt) as caught:
                state.commit()
            self.assertEqual(caught.exception.skip_sync, skips)
            state.commit()

    def test_only_rank_0_asks_the_driver(self) -> None:
        with mock.patch.object(assignment, "host_changes", lambda: 1):
            with self.assertRaises(hvd.HostsUpdatedInterrupt):
                local_state(epoch=0).check_host_updates()
            common.ObjectState(lambda obj: obj, lambda: 1, epoch=0).check_host_updates()

    def test_the_verdict_is_that_of_rank_0(self) -> None:
        state = common.ObjectState(lambda obj: 1, lambda: 1, epoch=0)
        with self.assertRaises(hvd.HostsUpdatedInterrupt):
            state.commit()


class TorchStateTest(JobOfOneTest):
    def setUp(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.5)
        self.state: Any = hvd.elastic.TorchState(self.model, self.optimizer, scheduler=self.scheduler, batch=0,
                                                 sampler=hvd.elastic.ElasticSampler(range(8)))

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.ones(1, 2)).sum().backward()
        self.optimizer.step()
        self.scheduler.step()
        self.state.sampler.record_batch(0, 2)
        self.state.batch += 1

    def seen(self) -> Any:
        return (self.model.weight.tolist(), [s["exp_avg"].tolist() for s in self.optimizer.state.values()],
                self.optimizer.param_groups[0]["lr"], self.state.batch, self.state.sampler.state_dict())

    def test_a_restore_brings_back_everything_each_time(self) -> None:
        self.step()
        self.state.commit()
        committed = self.seen()
        for _ in range(2):  # loaded tensors must not be those of the copy
            self.step()
            self.assertNotEqual(self.seen(), committed)
            self.state.restore()
            self.assertEqual(self.seen(), committed)

    def test_synchronizing_on_one_rank_changes_nothing_and_saves(self) -> None:
        self.step()
        before = self.seen()
        self.state.sync()
        self.assertEqual(self.seen(), before)
        self.step()
        self.state.restore()
        self.assertEqual(self.seen(), before)

    def test_a_replaced_model_is_the_one_that_is_saved(self) -> None:
        other = torch.nn.Linear(2, 1)
        self.state.model = other
        before = other.weight.tolist()
        with torch.no_grad():
            other.weight.zero_()
        self.state.restore()
        self.assertEqual(other.weight.tolist(), before)
        self.assertIs(self.state.model, other)

    def test_a_registry_of_the_program_decides_on_its_classes(self) -> None:
        class Counter:
            value = 0

        class CounterHandler(states.StateHandler):
            def save(self) -> None:
                self.saved = self.value.value

            def restore(self) -> None:
                self.value.value = self.saved

            def sync(self) -> None:
                pass

        before = states.get_handler_registry()
        self.addCleanup(states.set_handler_registry, before)
        states.set_handler_registry([*before, (Counter, CounterHandler)])
        state: Any = hvd.elastic.TorchState(counter=Counter())
        state.save()
        state.counter.value = 3
        state.restore()
        self.assertEqual(state.counter.value, 0)


class Story:
    """A state, and a function that does the next step of a list at each call."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.events: list[str] = []
        self.state: Any = local_state(count=0)
        for name in ("sync", "restore", "on_reset"):
            self._record(name)

    def _record(self, name: str) -> None:
        original = getattr(self.state, name)

        def recorded() -> None:
            self.events.append(name)
            original()

        setattr(self.state, name, recorded)

    def reset(self) -> None:
        self.events.append("reset")

    def train(self, state: Any, *arguments: Any) -> Any:
        self.events.append("train")
        state.count += 1
        step = self.steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step(state) if callable(step) else step

    def run(self) -> Any:
        return common.run_fn(self.train, self.reset)(self.state)


class LoopTest(unittest.TestCase):
    def test_a_lost_rank_means_restore_then_reset_then_sync(self) -> None:
        story = Story(hvd.HorovodInternalError("rank 1 was killed"), "done")
        self.assertEqual(story.run(), "done")
        self.assertEqual(story.events, ["sync", "train", "restore", "reset", "on_reset", "sync", "train"])
        self.assertEqual(story.state.count, 1)

    def test_new_hosts_mean_reset_and_sync_without_restore_also_if_they_were_only_removed(self) -> None:
        for removed in (False, True):
            story = Story(hvd.HostsUpdatedInterrupt(removed), "done")
            self.assertEqual(story.run(), "done")
            self.assertEqual(story.events, ["sync", "train", "reset", "on_reset", "sync", "train"])
            self.assertEqual(story.state.count, 2)

    def test_a_mismatch_and_errors_of_the_program_pass_through(self) -> None:
        for error in (hvd.HorovodMismatchError("shapes"), ValueError("x"), RuntimeError("removed")):
            story = Story(error)
            with self.assertRaises(type(error)):
                story.run()
            self.assertEqual(story.events, ["sync", "train"])

    def test_the_tenth_error_without_a_commit_passes_through(self) -> None:
        story = Story(*[hvd.HorovodInternalError(str(i)) for i in range(20)])
        with self.assertRaisesRegex(hvd.HorovodInternalError, "9"):
            story.run()
        self.assertEqual(story.events.count("train"), common.RESTARTS_WITHOUT_COMMIT)

    def test_a_commit_starts_the_count_again(self) -> None:
        def commit_and_fail(state: Any) -> None:
            state.commit()
            raise hvd.HorovodInternalError("again")

        story = Story(*[commit_and_fail] * 25, "done")
        self.assertEqual(story.run(), "done")

    def test_an_error_while_the_ranks_meet_again_is_one_more_restart(self) -> None:
        story = Story(hvd.HorovodInternalError("first"), "done")
        failing = iter([hvd.HorovodInternalError("a rank died during init")])

        def reset_once_failing() -> None:
            story.events.append("reset")
            for error in failing:
                raise error

        self.assertEqual(common.run_fn(story.train, reset_once_failing)(story.state), "done")
        self.assertEqual(story.events, ["sync", "train", "restore", "reset", "restore", "reset", "on_reset",
                                        "sync", "train"])

    def test_callbacks_run_after_init_and_before_the_state_is_synchronized(self) -> None:
        story = Story(hvd.HorovodInternalError("lost"), "done")
        story.state.register_reset_callbacks([lambda: story.events.append("callback")])
        story.run()
        self.assertEqual(story.events[2:], ["restore", "reset", "on_reset", "callback", "sync", "train"])


def train_on_ranks(fails_at: tuple[int, ...]) -> tuple[list[float], list[int], int]:
    """Elastic training whose groups fail on all ranks after these steps. Returns the weights, the samples of
    this rank that the final state contains, and the number of restarts."""
    hvd.init()
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(2, 1)
    optimizer: Any = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                                              model.named_parameters())
    sampler = hvd.elastic.ElasticSampler(range(40), seed=3)
    state: Any = hvd.elastic.TorchState(model, optimizer, sampler=sampler, step=0, used=[])
    remaining = list(fails_at)
    restarts: list[int] = []
    state.register_reset_callbacks([lambda: restarts.append(hvd.size())])

    @hvd.elastic.run
    def train(state: Any) -> None:
        for batch in torch.utils.data.DataLoader(range(40), batch_size=2, sampler=state.sampler):
            optimizer.zero_grad()
            model(torch.stack([batch, batch.sin()], 1).float() / 40).square().mean().backward()
            optimizer.step()
            state.step += 1
            state.used = [*state.used, *hvd.allgather_object(batch.tolist())]
            state.sampler.record_batch(0, len(batch))
            if state.step in remaining:
                remaining.remove(state.step)
                raise hvd.HorovodInternalError("a rank was killed")
            if state.step % 3 == 0:
                state.commit()

    train(state)
    used = [sample for samples in state.used for sample in samples]
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(), used, len(restarts)


class RanksTest(unittest.TestCase):
    def test_ranks_meet_again_and_their_training_equals_an_undisturbed_one(self) -> None:
        undisturbed, disturbed = (results(2, train_on_ranks, fails_at) for fails_at in ((), (2, 4, 8)))
        for rank in range(2):
            weights, used, restarts = disturbed[rank]
            self.assertEqual(weights, undisturbed[rank][0])
            self.assertEqual(sorted(used), list(range(40)))
            self.assertEqual((restarts, undisturbed[rank][2]), (3, 0))


class OneProcessTest(unittest.TestCase):
    """The whole loop with real groups of one process."""

    def test_training_after_an_error_equals_a_run_from_that_commit(self) -> None:
        def train(fails_at: set[int]) -> tuple[list[float], int]:
            torch.manual_seed(0)
            model = torch.nn.Linear(3, 1)
            optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            state: Any = hvd.elastic.TorchState(model, optimizer, step=0)
            inits = 0

            def count() -> None:
                nonlocal inits
                inits += hvd.is_initialized()

            state.register_reset_callbacks([count])

            @hvd.elastic.run
            def steps(state: Any) -> list[float]:
                while state.step < 12:
                    x = torch.full((2, 3), float(state.step % 3))
                    optimizer.zero_grad()
                    model(x).square().sum().mul(0.01).backward()
                    optimizer.step()
                    state.step += 1
                    if state.step in fails_at:
                        fails_at.remove(state.step)
                        raise hvd.HorovodInternalError("a rank was killed")
                    if state.step % 4 == 0:
                        state.commit()
                values: list[float] = model.weight.flatten().tolist()
                return values

            result: list[float] = steps(state)
            return result, inits

        hvd.init()
        self.addCleanup(hvd.shutdown)
        undisturbed, none = train(set())
        disturbed, twice = train({3, 7})
        self.assertEqual(undisturbed, disturbed)
        self.assertEqual((none, twice), (0, 2))

    def test_sets_that_were_added_are_gone_after_a_reset(self) -> None:
        added = hvd.ProcessSet([0])
        hvd.init(process_sets="dynamic")
        self.addCleanup(hvd.shutdown)
        with contextlib.suppress(ValueError):  # a set that equals the world
            hvd.add_process_set(added)
        rounds.reset()
        self.assertIsNone(added.process_set_id)
        self.assertTrue(hvd.is_initialized())
        self.assertEqual(hvd.global_process_set.ranks, [0])


if __name__ == "__main__":
    unittest.main()
