"""The backend "peal" in torch.distributed: groups, works, profiles, processes."""

from __future__ import annotations

import datetime
import functools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any

from needs import import_torch, numpy_wanted

import_torch()

import torch
import torch.distributed as dist

from peal import _c10d
from programs import PATIENCE
from ranks import all_reduced, outcomes, results


# ---- groups

def name() -> tuple[str, str]:
    return dist.get_backend(), dist.group.WORLD._get_backend(torch.device("cpu")).name()


def subgroups() -> list[Any]:
    me = dist.get_rank()
    pair = dist.new_group([0, 2], backend="peal")
    halves, _ = dist.new_subgroups(2)
    seen = [all_reduced(halves)]
    if me in (0, 2):
        seen.append(all_reduced(pair))
        data = torch.tensor([float(me)])
        dist.broadcast(data, src=2, group=pair)  # a global rank
        seen.append(float(data[0]))
    return seen


def split() -> list[Any]:
    world = dist.group.WORLD
    half = world.split_group([dist.get_rank() % 2, dist.get_rank() % 2 + 2],
                             datetime.timedelta(seconds=PATIENCE), None, "half")
    work = half.allreduce([torch.ones(2)], dist.AllreduceOptions())
    if work is not None:
        work.wait()
    return [half.size(), half.rank()]


def merged() -> list[Any]:
    store = dist.distributed_c10d._get_default_store()
    size, patience = dist.get_world_size(), datetime.timedelta(seconds=PATIENCE)
    half = dist.group.WORLD.split_group([dist.get_rank() % 2, dist.get_rank() % 2 + 2], patience,
                                        None, "half to merge")
    whole = half.merge_remote_group(dist.PrefixStore("merged", store), size, patience, "merged")
    place = torch.zeros(size)
    place[whole.rank()] = 1
    work = whole.allreduce([place], dist.AllreduceOptions())
    if work is not None:
        work.wait()
    return [half.size(), whole.size(), place.tolist()]


def mesh() -> list[float]:
    grid = torch.distributed.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    return [all_reduced(grid.get_group("a")), all_reduced(grid.get_group("b"))]


def within_gloo() -> float:
    return all_reduced(dist.new_group(backend="peal"))


def await_file(path: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        assert time.monotonic() < deadline, path
        time.sleep(0.001)


def made_and_destroyed_again(folder: str, rank: int, size: int) -> int:
    """The ranks destroy their groups one after the other, and torch's file is gone after the last.
    If two ranks destroy their groups at once, torch's FileStore may leave the file behind, with any
    backend. Its destructor reads two counters under separate locks, and removes the file only if both
    counters are at the end."""
    times = 0
    for k in range(20):
        store, ended = f"{folder}/store-{k}", f"{folder}/ended-{k}-"
        dist.init_process_group("peal", init_method=f"file://{store}", rank=rank, world_size=size)
        all_reduced()
        if rank > 0:
            await_file(f"{ended}{rank - 1}")
        assert os.path.exists(store)
        dist.destroy_process_group()
        with open(f"{ended}{rank}", "x", encoding="utf-8"):
            pass
        times += rank < size - 1 or not os.path.exists(store)
    return times


def again() -> int:
    rank, size = dist.get_rank(), dist.get_world_size()
    path = os.environ["PEAL_TEST_FOLDER"]
    dist.destroy_process_group()
    times = made_and_destroyed_again(path, rank, size)
    dist.init_process_group("peal", init_method=f"file://{path}/last", rank=rank, world_size=size)
    return times


def eager_and_lazy() -> list[bool]:
    import peal

    lazy = dist.new_group(backend="peal", pg_options=peal.TorchOptions(lazy=True))
    eager = dist.new_group(backend="peal")
    assert all_reduced(lazy) == all_reduced(eager) == dist.get_world_size() ** 2
    return [True]


def subgroups_of_a_lazy_whole() -> list[float]:
    """The third rank is not in the group and makes no operation."""
    if dist.get_rank() == 2:
        dist.new_group([0, 1], backend="peal")
        return []
    return [all_reduced(dist.new_group([0, 1], backend="peal"))]


def lazy_default(folder: str) -> list[float]:
    import peal

    rank, size = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    dist.init_process_group("peal", init_method=f"file://{folder}/lazy", rank=rank, world_size=size,
                            pg_options=peal.TorchOptions(lazy=True))
    return subgroups_of_a_lazy_whole()


def sequence() -> list[int]:
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    before = backend._get_sequence_number_for_group()
    all_reduced()
    return [backend._get_sequence_number_for_group() - before]


class GroupsTest(unittest.TestCase):
    def test_the_backend_is_called_peal(self) -> None:
        for names in results(2, name):
            self.assertEqual(names, ("peal", "peal"))

    def test_subgroups_are_groups_and_their_roots_are_global_ranks(self) -> None:
        self.assertEqual(results(4, subgroups), [[4, 4, 2], [4], [4, 4, 2], [4]])

    def test_a_group_splits(self) -> None:
        self.assertEqual(results(4, split), [[2, 0], [2, 0], [2, 1], [2, 1]])

    def test_groups_merge(self) -> None:
        self.assertEqual(results(4, merged), [[2, 4, [1.0] * 4]] * 4)

    def test_a_mesh_has_groups(self) -> None:
        self.assertEqual(results(4, mesh), [[4, 4]] * 4)

    def test_a_gloo_job_can_have_a_peal_group(self) -> None:
        self.assertEqual(results(2, within_gloo, backend="gloo"), [4, 4])

    def test_peal_can_be_the_cpu_part_of_a_mixed_backend(self) -> None:
        # "cpu:peal,cuda:nccl" needs a torch with NCCL.
        others = ["cuda:gloo"] + (["cuda:nccl"] if dist.is_nccl_available() else [])
        for backend in ["cpu:peal"] + [f"cpu:peal,{other}" for other in others]:
            with self.subTest(backend):
                self.assertEqual(results(2, all_reduced, backend=backend), [4, 4])

    def test_a_process_can_make_and_destroy_groups_many_times(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(results(2, again, environment={"PEAL_TEST_FOLDER": folder}), [20, 20])

    def test_groups_connect_at_once_or_at_their_first_operation(self) -> None:
        self.assertEqual(results(2, eager_and_lazy), [[True]] * 2)

    def test_a_subgroup_of_a_lazy_default_group_needs_only_its_ranks(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(results(3, functools.partial(lazy_default, folder)), [[4], [4], []])

    def test_a_rank_fails_at_once_if_its_store_is_gone(self) -> None:
        server = dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
        client = dist.TCPStore("127.0.0.1", server.port, 2, False, wait_for_workers=False)
        del server  # as if rank 0 failed before the rendezvous
        begin = time.monotonic()
        with self.assertRaisesRegex(dist.DistBackendError,
                                    "torch's store failed.*before dist.destroy_process_group"):
            _c10d.create(client, 1, 2, 3600.0, [], lazy=False, store_ends_with_rank_0=True)
        self.assertLess(time.monotonic() - begin, PATIENCE)

    def test_each_operation_increases_the_sequence_number(self) -> None:
        self.assertEqual(results(2, sequence), [[2], [2]])

    def test_torchs_detailed_checks_work_around_the_backend(self) -> None:
        self.assertEqual(
            results(2, all_reduced, environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}), [4, 4])


# ---- Python objects, which torch sends as tensors

def objects() -> list[Any]:
    me, size = dist.get_rank(), dist.get_world_size()
    every: list[Any] = [None] * size
    dist.all_gather_object(every, {"rank": me, "text": "x" * me})
    gathered: list[Any] | None = [None] * size if me == 0 else None
    dist.gather_object(me, gathered)
    broadcast = ["from 0" if me == 0 else None]
    dist.broadcast_object_list(broadcast, 0)
    own: list[Any] = [None]
    dist.scatter_object_list(own, [10 * r for r in range(size)], 0)
    if me == 0:
        dist.send_object_list(["sent"], 1)
    elif me == 1:
        dist.recv_object_list(broadcast, 0)
    return [every, gathered, broadcast, own]


class ObjectsTest(unittest.TestCase):
    @numpy_wanted
    def test_objects_are_sent_between_ranks(self) -> None:
        every = [{"rank": r, "text": "x" * r} for r in range(3)]
        self.assertEqual(results(3, objects), [
            [every, [0, 1, 2], ["from 0"], [0]],
            [every, None, ["sent"], [10]],
            [every, None, ["from 0"], [20]]])


# ---- profiles

def profiled() -> dict[str, list[Any]]:
    with torch.profiler.profile(record_shapes=True) as profile:
        all_reduced()
        dist.all_gather([torch.ones(5), torch.ones(5)], torch.ones(5))
        dist.barrier()
    return {event.key: event.input_shapes
            for event in profile.key_averages(group_by_input_shape=True)
            if event.key.startswith("peal:")}


def profiled_messages() -> dict[str, tuple[int, bool, Any]]:
    """By name: the number of events, whether all were asynchronous, and the shapes."""
    data = torch.ones(5)
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        if dist.get_rank() == 0:
            dist.recv(data, 1)
            dist.recv(data)
            dist.irecv(data).wait()
        else:
            for _ in range(3):
                dist.send(data, 0)
    seen: dict[str, tuple[int, bool, Any]] = {}
    for event in profile.function_events:
        if event.name.startswith("peal:"):
            count, is_async, _ = seen.get(event.name, (0, True, None))
            seen[event.name] = count + 1, is_async and event.is_async, event.input_shapes
    return seen


PAUSE = 0.2  # seconds


def waited_for_while_callbacks_are_busy() -> list[float]:
    """The durations of the two receives of rank 0 in the profile, in seconds."""
    data = torch.ones(5)
    if dist.get_rank() == 1:
        for _ in range(2):
            dist.recv(data, 0)
            time.sleep(PAUSE)
            dist.send(data, 0)
        return []
    profile_has_ended = threading.Event()
    try:
        with torch.autograd.profiler.profile() as profile:
            first = dist.irecv(data, 1)
            # Keeps the callbacks' thread busy.
            first.get_future().then(lambda _: profile_has_ended.wait())
            dist.send(data, 1)
            first.wait()
            second = dist.irecv(data, 1)
            dist.send(data, 1)
            second.wait()
    finally:
        profile_has_ended.set()
    return [(event.time_range.end - event.time_range.start) / 1e6
            for event in profile.function_events if event.name == "peal:recv"]


def polled_under_hooks() -> int:
    """The number of messages received. With these hooks, the end of an operation's record takes the
    GIL."""
    data = torch.ones(5)
    received = 0
    for _ in range(100):
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        with torch.autograd.profiler.profile(), hooks:
            if dist.get_rank() == 0:
                work = dist.irecv(data, 1)
                dist.send(data, 1)
                while not work.is_completed():
                    pass
                work.wait()
                received += int(data.sum()) // 5
            else:
                dist.recv(data, 0)
                dist.send(data, 0)
    return received


class ProfilesTest(unittest.TestCase):
    def test_operations_are_polled_while_hooks_for_saved_tensors_are_active(self) -> None:
        self.assertEqual(results(2, polled_under_hooks), [100, 0])

    def test_an_operation_has_ended_in_the_profile_after_a_wait_for_it(self) -> None:
        # A record that ends later writes into memory that the profile has freed.
        durations = results(2, waited_for_while_callbacks_are_busy)[0]
        self.assertEqual(len(durations), 2)
        for duration in durations:
            self.assertGreater(duration, PAUSE / 2)  # the profile uses another clock

    def test_profiles_show_messages_as_for_torchs_own_backends(self) -> None:
        self.assertEqual(results(2, profiled_messages), [
            {"peal:recv": (1, True, [[5]]), "peal:recvAnySource": (2, True, [[5]])},
            {"peal:send": (3, True, [[5]])}])

    def test_profiles_show_operations_with_their_shapes(self) -> None:
        for events in results(2, profiled):
            self.assertEqual(set(events), {"peal:all_reduce", "peal:all_gather", "peal:barrier"})
            self.assertEqual(events["peal:all_reduce"], [[3]])
            self.assertEqual(events["peal:all_gather"], [[5]])


# ---- processes

class Numbers(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index)])


def loads_data_in_other_processes() -> float:
    total = torch.zeros(1)
    for epoch in range(2):
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2,
                                             multiprocessing_context="fork")
        for batch in loader:
            total += batch.sum()
            dist.all_reduce(torch.ones(1))
    return float(total[0]) * all_reduced()


def uses_the_group_in_a_fork() -> str:
    import multiprocessing

    def use(there: Any) -> None:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            there.send(str(error))

    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=use, args=(there,))
    child.start()
    text: str = here.recv()
    child.join()
    all_reduced()
    return text


IMPORT = """
import os, threading, sys
import torch
from peal_autoload import register
register()
print("peal" in sys.modules, threading.active_count(), len(os.listdir("/proc/self/task")))
print("peal" in torch.distributed.Backend.backend_list)
"""


# The third rank never starts.
MEET = """
import datetime, signal, sys, torch.distributed as dist
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
dist.init_process_group("peal", init_method=sys.argv[1], rank=int(sys.argv[2]), world_size=3,
                        timeout=datetime.timedelta(seconds=600))
"""


class ProcessesTest(unittest.TestCase):
    def test_ctrl_c_during_the_rendezvous_ends_the_ranks_that_wait(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            processes = [
                subprocess.Popen([sys.executable, "-c", MEET, f"file://{folder}/store", str(rank)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(2)]
            for process in processes:
                self.addCleanup(process.kill)
                assert process.stdout is not None
                process.stdout.readline()
            time.sleep(2)
            processes[1].send_signal(signal.SIGINT)
            begin = time.monotonic()
            texts = [process.communicate(timeout=PATIENCE)[1] for process in processes]
            self.assertLess(time.monotonic() - begin, PATIENCE)
            self.assertIn("rank 1", texts[0])
            self.assertIn("KeyboardInterrupt", texts[1])

    def test_ranks_with_different_secrets_get_an_error_that_says_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            processes = [
                subprocess.Popen([sys.executable, "-c", MEET, f"file://{folder}/store", str(rank)],
                                 env={**os.environ, "PEAL_SECRET": f"the secret of rank {rank}"},
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(2)]
            for process in processes:
                self.addCleanup(process.kill)
            for process in processes:
                text = process.communicate(timeout=PATIENCE)[1]
                self.assertIn("does not bear this job's seal", text)
                self.assertIn("PEAL_SECRET", text)

    def test_tls_without_a_secret_is_rejected(self) -> None:
        for end in outcomes(2, all_reduced, environment={"PEAL_TLS": "on"}):
            self.assertEqual(end.kind, "DistError")
            self.assertIn("PEAL_TLS=on needs a secret", str(end.error))

    def test_forked_data_loaders_do_not_affect_the_group(self) -> None:
        self.assertEqual(results(2, loads_data_in_other_processes), [224.0, 224.0])

    def test_a_forked_process_gets_an_error_that_says_it_is_not_in_the_group(self) -> None:
        for text in results(2, uses_the_group_in_a_fork):
            self.assertIn("forked", text)
            self.assertIn("init_process_group", text)

    def test_torchs_file_for_a_group_is_removed_with_the_group(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(
                results(2, again, environment={"PEAL_TEST_FOLDER": folder}), [20, 20])

    def test_torch_knows_the_backend_without_loading_peal(self) -> None:
        ended = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True,
                               timeout=PATIENCE, check=True)
        loaded, known = ended.stdout.splitlines()
        self.assertTrue(loaded.startswith("False 1 "), loaded)
        self.assertEqual(known, "True")

    def test_another_version_of_torch_gives_an_error_that_says_what_to_do(self) -> None:
        script = ("import peal._build as b; b.TORCH_VERSION = '2.0.1'\n"
                  "import torch.distributed as d\n"
                  "d.init_process_group('peal', init_method='file:///tmp/never', rank=0,"
                  " world_size=1)\n")
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                               timeout=PATIENCE)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("was built for torch 2.0.1", ended.stderr)
        self.assertIn("pip install --no-build-isolation", ended.stderr)


if __name__ == "__main__":
    unittest.main()
