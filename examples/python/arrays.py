"""A group without torch: data are arrays of any kind, here Python's array.array.

    peal run -n 2 python examples/python/arrays.py           # or torchrun, mpirun, srun
    python examples/python/arrays.py --spawn 2
"""

from __future__ import annotations

import argparse
from array import array

import peal


def work() -> list[float]:
    """The sum over all ranks, on every rank."""
    with peal.init_process_group() as group:
        rank, size = group.rank, group.size
        data = array("d", [rank + 1, 10 * (rank + 1)])
        group.all_reduce(data)

        left = array("q", [0])
        coming = group.irecv(left, (rank - 1) % size)
        group.send(array("q", [rank]), (rank + 1) % size)
        coming.wait()

        names = group.all_gather_object(f"rank {rank}")  # as JSON
        print(f"rank {rank} of {size}: sum {data.tolist()}, left of it is {left[0]}, "
              f"all are {', '.join(names)}", flush=True)
    return data.tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--spawn", type=int, metavar="RANKS",
                        help="start this number of ranks, instead of being a rank of a launcher")
    arguments = parser.parse_args()
    if arguments.spawn:
        print(f"results by rank: {peal.spawn(work, ranks=arguments.spawn)}")
    else:
        work()
