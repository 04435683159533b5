"""Names in any order, process sets, join, and repeated starts of peal.horovod."""

from __future__ import annotations

import json
import os
import random
import tempfile
import unittest
from pathlib import Path

from needs import import_torch

import_torch()

import torch

from horovod_ranks import RanksTest
from horovod_values import Checks


def use_names() -> list[str]:
    """Names in another order on each rank, sets side by side, barriers that overtake."""
    import peal.horovod as hvd

    sets = [hvd.ProcessSet([0, 1]), hvd.ProcessSet(range(1, 3)), hvd.ProcessSet([2])]
    hvd.init(process_sets=sets)
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()
    for count, rounds in ((60, 3), (1000, 1)):
        for seed in range(rounds):
            order = list(range(count))
            random.Random(100 * seed + rank).shuffle(order)
            tensors = {i: torch.full((i % 7 + 1,), float(i * (rank + 1)), dtype=torch.float64) for i in order}
            handles = {i: hvd.allreduce_async_(tensors[i], name=f"n{i}", op=hvd.Sum) for i in order}
            random.Random(seed + 10 * rank).shuffle(order)
            for i in order:
                hvd.synchronize(handles[i])
            wrong = [i for i in order if tensors[i][0] != i * 6]
            checks.equal(wrong, [], f"{count} names, seed {seed}")
    checks.equal([(one.process_set_id, one.size(), one.included()) for one in sets],
                 [(i + 1, len(ranks), rank in ranks) for i, ranks in enumerate(([0, 1], [1, 2], [2]))], "sets")
    mine = [one for one in sets if one.included()]
    handles = {}
    for one in reversed(mine):  # one name in several sets and kinds
        handles[one] = [hvd.allreduce_async(torch.tensor([rank + 1.0]), name="x", op=hvd.Sum, process_set=one),
                        hvd.allgather_async(torch.tensor([rank]), name="x", process_set=one),
                        hvd.broadcast_async(torch.tensor([rank]), one.ranks[-1], name="x", process_set=one)]
    for one in mine:
        total, gathered, sent = map(hvd.synchronize, handles[one])
        checks.equal(float(total), float(sum(r + 1 for r in one.ranks)), f"allreduce in {one}")
        checks.equal(gathered.tolist(), one.ranks, f"allgather in {one}")
        checks.equal(int(sent), one.ranks[-1], f"broadcast in {one}")
        checks.equal(one.rank(), one.ranks.index(rank), f"rank in {one}")
        checks.equal(hvd.broadcast_object(rank, one.ranks[0], process_set=one), one.ranks[0], f"object in {one}")
        checks.equal(hvd.allgather_object(rank, process_set=one), one.ranks, f"objects in {one}")
    other = next(one for one in sets if not one.included())
    checks.raises(ValueError, [f"Rank {rank} is not a member of the provided process set"],
                  lambda: hvd.allreduce(torch.ones(1), process_set=other), "a foreign set")
    checks.raises(ValueError, ["does not include this process"], other.rank, "rank in a foreign set")
    checks.raises(ValueError, ["root"], lambda: hvd.broadcast(torch.ones(1), 2, process_set=sets[0])
                  if rank < 2 else hvd.broadcast(torch.ones(1), 0, process_set=sets[2]), "a foreign root")
    hvd.barrier()
    late = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum) if rank == 0 else None
    hvd.barrier()  # does not wait for "late"
    if rank == 0:
        checks.raises(ValueError, ["same name as another tensor that is currently being processed"],
                      lambda: hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum), "a duplicate")
    if rank == 2:
        hvd.barrier(sets[2])  # the other ranks are not in this set
    hvd.barrier()
    if late is None:
        late = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
    checks.equal(float(hvd.synchronize(late)), float(size), "the late operation")
    checks.raises(ValueError, ["HOROVOD_DYNAMIC_PROCESS_SETS=1"], lambda: hvd.add_process_set([0, 2]), "static")
    from peal.horovod.elastic import rounds

    rounds.reset()
    checks.equal([one.process_set_id for one in sets], [1, 2, 3], "sets after a reset")
    hvd.shutdown()
    checks.equal([one.process_set_id for one in sets], [None] * 3, "ids after shutdown")
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"  # read by init, not at import
    hvd.init()
    added = hvd.add_process_set([2, 0])
    checks.equal((added.process_set_id, added.ranks), (1, [0, 2]), "an added set")
    for again in ([0, 2], [2, 0], [0, 1, 2], added):
        checks.raises(ValueError, [], lambda: hvd.add_process_set(again), f"{again} twice")
    if added.included():
        checks.equal(float(hvd.allreduce(torch.tensor(float(rank)), process_set=added)), 1.0, "an added set")
    checks.equal(hvd.remove_process_set(added), True, "remove")
    checks.equal(added.process_set_id, None, "the id of a removed set")
    checks.equal(hvd.remove_process_set(added), False, "remove again")
    return checks.failures


def join_early() -> list[str]:
    import peal.horovod as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()
    for turn in range(2):
        last = (turn + 1) % size
        if rank == last:
            x = torch.tensor([4.0, -4.0])
            checks.equal(hvd.allreduce(x, name="a"), x / size, "the average divides by all ranks")
            checks.equal(hvd.allreduce(x, name="b", op=hvd.Sum), x, "joined ranks add zeros")
            for op in (hvd.Min, hvd.Max, hvd.Product):
                checks.equal(hvd.allreduce(x, name="c", op=op), x, f"op {op} leaves joined ranks out")
            for what, call in (("Allgather", lambda: hvd.allgather(x, name="d")),
                               ("Broadcast", lambda: hvd.broadcast(x, last, name="d")),
                               ("Alltoall", lambda: hvd.alltoall(x, [1, 1] + [0] * (size - 2), name="d")),
                               ("Reducescatter", lambda: hvd.reducescatter(x, name="d"))):
                checks.raises(hvd.HorovodInternalError, ["is not supported with Join at this time"], call, what)
            checks.equal(hvd.allreduce(x, name="e", op=hvd.Sum), x, "after a refusal")
        checks.equal(hvd.join(hvd.local_rank()), last, "the last rank")
        checks.equal(float(hvd.allreduce(torch.tensor(1.0), name="all", op=hvd.Sum)), float(size), "after join")
        checks.equal(hvd.allgather(torch.tensor([rank])).tolist(), list(range(size)), "allgather after join")
    return checks.failures


def join_with_all_operations() -> list[str]:
    """What init allows while ranks have joined, also after an elastic reset."""
    import peal.horovod as hvd
    from peal.horovod.elastic import rounds

    hvd.init(while_joined="all")
    checks = Checks()
    for _ in range(2):
        if hvd.rank() == 0:
            checks.equal(hvd.allgather(torch.tensor([7])).tolist(), [7], "only this rank has rows")
        checks.equal(hvd.join(), 0, "the last rank")
        rounds.reset()
    return checks.failures


def start_again_and_again(folder: str) -> list[str]:
    import peal.horovod as hvd

    checks = Checks()
    counts = []
    for cycle in range(115):
        hvd.init()
        checks.equal(float(hvd.allreduce(torch.tensor(1.0), name="x", op=hvd.Sum)), 2.0, f"cycle {cycle}")
        hvd.shutdown()
        hvd.shutdown()
        counts.append((len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))))
    checks.equal(counts[-1], counts[10], "descriptors and threads")
    checks.raises(ValueError, ["Horovod has not been initialized"], hvd.rank, "after shutdown")
    os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"
    hvd.init()
    path = f"{folder}/timeline-{hvd.rank()}.json"
    hvd.start_timeline(path, mark_cycles=True)
    for i in range(3):
        hvd.allreduce(torch.ones(3), name="seen")
        if hvd.rank() == 0:
            events = json.loads(Path(path).read_text())  # at every moment
            checks.equal(bool(events), i >= 0, "events")
    hvd.stop_timeline()
    hvd.stop_timeline()
    if hvd.rank() == 0:
        text = Path(path).read_text()
        checks.equal("NEGOTIATE_ALLREDUCE" in text and "allreduce.seen" in text, True, "the timeline")
    del os.environ["HOROVOD_TIMELINE"]
    hvd.shutdown()
    hvd.init()
    checks.raises(ValueError, ["HOROVOD_TIMELINE"], lambda: hvd.start_timeline(path), "without the variable")
    # One rank leaves while an operation of the others waits for it.
    if hvd.rank() == 0:
        checks.raises(hvd.HorovodInternalError, ["rank 1"], lambda: hvd.allreduce(torch.ones(1), name="never"),
                      "the shutdown of a peer", exactly=True)
    hvd.shutdown()
    return checks.failures


class NamesTest(RanksTest):
    def test_names_in_any_order_sets_and_barriers(self) -> None:
        self.passes(3, use_names)

    def test_ranks_that_join_early(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, join_early)

    def test_init_allows_all_operations_while_ranks_have_joined(self) -> None:
        self.passes(2, join_with_all_operations)

    def test_starts_and_ends_leak_nothing_and_the_timeline_is_json(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.passes(2, start_again_and_again, folder)


if __name__ == "__main__":
    unittest.main()
