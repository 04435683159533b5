"""The Work of an operation of torch.distributed on peal: its end, its future, its tensors."""

from __future__ import annotations

import datetime
import gc
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable

from needs import import_torch

import_torch()

import torch
import torch.distributed as dist

from peal import _c10d

from programs import PATIENCE
from ranks import all_reduced, results


def works() -> list[Any]:
    data = torch.full((4,), dist.get_rank() + 1.0)
    work = dist.all_reduce(data, async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0] * 2)
    seen = [doubled.wait().tolist()]
    work.wait()
    seen += [work.is_completed(), work.is_success(), work.result()[0].data_ptr() == data.data_ptr()]
    return seen


def works_in_callbacks() -> list[float]:
    """As in a communication hook of DDP: the callback of the first operation starts a second operation
    and waits for it."""
    def once_more(done: Any) -> torch.Tensor:
        again = done.value()[0].clone()
        dist.all_reduce(again, async_op=True).wait()
        return again

    seen = []
    for _ in range(6):
        first = dist.all_reduce(torch.ones(2), async_op=True)
        seen.append(float(first.get_future().then(once_more).wait()[0]))
    return seen


def polled_for() -> list[Any]:
    """Results in strided tensors are written back, after a poll and after the release of the Work."""
    polled, dropped = torch.ones(4, 4)[:, 1], torch.ones(4, 4)[:, 1]
    work = dist.all_reduce(polled, async_op=True)
    while not work.is_completed():
        time.sleep(0.001)
    work = dist.all_reduce(dropped, async_op=True)
    dist.barrier()  # the operation has ended, without a call of its Work
    del work
    return [polled.tolist(), dropped.tolist()]


def one_at_0() -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (4,))


def aborted_sparse() -> str:
    dist.all_reduce(one_at_0())
    if dist.get_rank() == 1:
        dist.recv(torch.zeros(1), 0)  # until the other rank has aborted
        return ""
    work = dist.all_reduce(one_at_0(), async_op=True)
    begin = time.monotonic()
    dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    try:
        work.wait()
    except dist.DistBackendError:
        pass
    return "at once" if time.monotonic() - begin < PATIENCE else "late"


def aborts_sparse() -> str:
    try:
        return aborted_sparse()
    except dist.DistBackendError as error:
        return "aborted" if "abort" in str(error) else str(error)


def group_with_sums(timeout: float = 3600.0) -> Any:
    """A group that has summed sparse tensors, so its group and thread for sums exist."""
    group = dist.new_group(backend="peal", timeout=datetime.timedelta(seconds=timeout))
    dist.all_reduce(one_at_0(), group=group)
    return group


def destroys_a_group_that_sums() -> float:
    group = group_with_sums()
    if dist.get_rank() == 1:
        time.sleep(0.5)  # so that the other rank leaves while it waits
    data = one_at_0()
    work = dist.all_reduce(data, async_op=True, group=group)
    if dist.get_rank() == 0:
        dist.destroy_process_group(group)
    work.wait()
    return float(data.to_dense()[0])


def destroys_a_group_that_gets_stuck() -> list[Any]:
    group = group_with_sums(10.0 if dist.get_rank() == 0 else 3600.0)
    if dist.get_rank() == 1:
        begin = time.monotonic()
        try:
            dist.recv(torch.zeros(1), 0, group=group)
        except dist.DistBackendError as error:
            dist.barrier()  # the other rank lives until this point
            return ["left" in str(error), time.monotonic() - begin < PATIENCE]
    options = dist.AllreduceOptions()
    options.timeout = datetime.timedelta(seconds=3600)
    works = [group.allreduce([data], options) for data in (one_at_0(), torch.ones(1))]
    begin = time.monotonic()
    try:
        dist.destroy_process_group(group)
    except dist.DistBackendError as error:
        seen = ["timeout" in str(error), 10.0 <= time.monotonic() - begin < PATIENCE]
        dist.barrier()
        del works
        return seen
    return ["no error"]


def dropped_works() -> bool:
    """A thread of the engine releases the last reference to a tensor while this thread has the GIL."""
    for k in range(200):
        dist.all_reduce(torch.ones(1000), async_op=True)
        if k % 50 == 0:
            gc.collect()
    dist.barrier()
    return True


def groups_freed_with_operations_under_way() -> bool:
    for _ in range(10):
        group = dist.new_group(backend="peal")
        for _ in range(5):
            dist.all_reduce(torch.ones(1000), async_op=True, group=group)
        dist.destroy_process_group(group)
        del group
        gc.collect()
    return True


def backends_freed_where_an_operation_ends() -> int:
    """The thread that ends the operation releases the last reference to the backend."""
    store = dist.distributed_c10d._get_default_store()
    freed = []
    for name, data in (("dense", torch.ones(4)), ("sparse", one_at_0())):
        backend = [_c10d.create(dist.PrefixStore(name, store), dist.get_rank(), 2, PATIENCE, [0, 1],
                                lazy=False, store_ends_with_rank_0=False)]
        backend[0].allreduce([data.clone()]).wait()
        if dist.get_rank() == 1:
            time.sleep(0.5)  # so that the other rank's operation ends on a thread of its backend
        ended = backend[0].allreduce([data.clone()]).get_future()
        thread = ended.then(lambda done, held=backend: (held.clear(), threading.get_ident())[1])
        del ended
        freed.append(thread.wait() != threading.get_ident())
    dist.barrier()
    return freed[0] + freed[1]


def leaves_where_an_operation_ends() -> list[str]:
    """The error of a callback that destroys its group on a thread of the group."""
    group = dist.new_group(backend="peal")
    if dist.get_rank() == 1:
        time.sleep(0.5)
    ended = dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future()
    called = ended.then(lambda done: dist.destroy_process_group(group))
    try:
        called.wait()
        said = ""
    except RuntimeError as error:
        said = str(error)
    dist.barrier()
    return [said]


def raises_where_an_operation_ends() -> str:
    """The callback of rank 0 raises and destroys its group. Returns its error on rank 0, and the error
    that rank 1 gets."""
    group = dist.new_group(backend="peal")
    if dist.get_rank() == 1:
        time.sleep(0.5)
    ended = dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future()

    def fail(done: torch.futures.Future[Any]) -> None:
        try:
            raise ValueError("out of luck")
        finally:
            dist.destroy_process_group(group)

    try:
        if dist.get_rank() == 0:
            ended.then(fail).wait()
        ended.wait()
        dist.all_reduce(torch.ones(1), group=group)
        said = ""
    except RuntimeError as error:
        said = str(error)
    dist.barrier()
    return said


def others_run_while_one_waits(folder: str) -> bool:
    """Rank 0 waits for rank 1 until another thread of rank 0 has run for a while."""
    def run(ran: Path) -> None:
        for _ in range(20):  # the first sleeps may end before the main thread waits
            time.sleep(0.01)
        ran.touch()

    waits: list[Callable[[], Any]] = [
        lambda: dist.all_reduce(torch.ones(1)),
        lambda: dist.all_reduce(torch.ones(1), async_op=True).wait()]
    for number, wait in enumerate(waits):
        ran = Path(folder, str(number))
        if dist.get_rank() == 0:
            thread = threading.Thread(target=run, args=(ran,))
            thread.start()
            wait()
            thread.join()
            continue
        end = time.monotonic() + PATIENCE
        while not ran.exists():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        wait()
    return True


def failed_work() -> list[Any]:
    group = dist.new_group(backend="peal", timeout=datetime.timedelta(seconds=2))
    if dist.get_rank() == 1:
        dist.barrier()  # rank 0 calls it after its error
        return []
    begin = time.monotonic()
    work = dist.all_reduce(torch.ones(1), async_op=True, group=group)
    try:
        work.wait()
        return ["no error"]
    except RuntimeError as error:
        took = time.monotonic() - begin
        dist.barrier()
        return [2 <= took < PATIENCE, type(error).__name__, "timeout" in str(error),
                work.is_success(), "timeout" in str(work.exception())]


def waits_no_longer_than_asked() -> list[bool]:
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 1:
        store.wait(["rank 0 has waited"])
    work = dist.all_reduce(torch.ones(1), async_op=True)
    seen = []
    if dist.get_rank() == 0:
        try:
            work.wait(datetime.timedelta(seconds=0.1))
        except RuntimeError as error:
            seen.append("timeout" in str(error))
        store.set("rank 0 has waited", "")
    work.wait()
    return seen + [work.is_success()]


class WorksTest(unittest.TestCase):
    def test_a_work_has_a_future_and_results(self) -> None:
        for seen in results(2, works):
            self.assertEqual(seen, [[6.0] * 4, True, True, True])

    def test_a_callback_may_wait_for_another_operation(self) -> None:
        self.assertEqual(results(2, works_in_callbacks), [[4.0] * 6] * 2)

    def test_the_result_is_complete_after_a_poll_or_a_released_work(self) -> None:
        self.assertEqual(results(2, polled_for), [[[2.0] * 4] * 2] * 2)

    def test_an_abort_ends_a_sum_of_sparse_tensors(self) -> None:
        self.assertEqual(results(2, aborts_sparse), ["at once", "aborted"])

    def test_a_sum_of_sparse_tensors_ends_before_its_group_is_destroyed(self) -> None:
        self.assertEqual(results(2, destroys_a_group_that_sums), [2.0, 2.0])

    def test_a_rank_can_leave_a_group_with_a_stuck_sum(self) -> None:
        self.assertEqual(results(2, destroys_a_group_that_gets_stuck), [[True, True]] * 2)

    def test_works_may_be_released_early(self) -> None:
        self.assertEqual(results(2, dropped_works), [True, True])

    def test_groups_may_be_destroyed_while_operations_are_in_flight(self) -> None:
        self.assertEqual(results(2, groups_freed_with_operations_under_way), [True, True])

    def test_a_backend_may_be_freed_in_the_callback_of_its_operation(self) -> None:
        self.assertEqual(results(2, backends_freed_where_an_operation_ends)[0], 2)

    def test_a_callback_cannot_wait_for_its_own_thread(self) -> None:
        self.assertIn("Call it on another thread", results(2, leaves_where_an_operation_ends)[0][0])

    def test_peers_receive_the_exception_of_a_callback_that_destroys_the_group(self) -> None:
        raised, received = results(2, raises_where_an_operation_ends)
        self.assertIn("ValueError: out of luck", raised)
        self.assertIn("rank 0 threw: ValueError: out of luck", received)

    def test_other_threads_run_while_one_waits(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(results(2, others_run_while_one_waits, folder), [True, True])

    def test_the_work_of_an_operation_that_times_out_has_the_error(self) -> None:
        self.assertEqual(results(2, failed_work)[0], [True, "DistError", True, False, True])

    def test_a_wait_ends_at_its_timeout_and_the_operation_continues(self) -> None:
        self.assertEqual(results(2, waits_no_longer_than_asked), [[True, True], [True]])


if __name__ == "__main__":
    unittest.main()
