"""Whether a launcher or a signal has asked the ranks to stop. All ranks get the same answer."""

from __future__ import annotations

import sys
from typing import Any

from peal import _core
from peal._errors import Error


def should_stop(group: Any = None) -> bool:
    """Whether the process of any rank of the group was asked to stop; the same on all ranks.

    Call it once in each step. After True, save and end with exit code 0::

        for step in range(steps):
            if peal.should_stop():
                break
            train(step)
        save()

    `group` is a `peal.ProcessGroup`, or a group of torch.distributed with any backend; None: torch's
    default group.

    A process is asked by its launcher, before a time limit or at the end of the job, and by SIGTERM. SIGINT
    raises KeyboardInterrupt as usual. A signal that the program handles itself is not noticed. After a
    request, all later calls return True.

    A process notes requests from its first call. Before this call, SIGTERM ends the process. After it,
    `peal run` asks without SIGTERM, which would also end the children, such as the workers of a DataLoader.

    Order: a collective, called by all ranks equally often.
    Errors: those of all_reduce; usage (no group, in a program without torch).
    Cost: an all_reduce of one byte."""
    if isinstance(group, _core.ProcessGroup):
        return group.should_stop()
    if group is None and "torch" not in sys.modules:
        raise Error("should_stop needs a group in a program without torch: "
                    "pass the one from peal.init_process_group", "usage")
    import torch
    import torch.distributed as dist

    device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
    flag = torch.tensor([_core.stop_requested()], dtype=torch.uint8, device=device)
    dist.all_reduce(flag, dist.ReduceOp.MAX, group=group)
    return bool(flag.item())
