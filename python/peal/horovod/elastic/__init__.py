"""Elastic training: `horovod.torch.elastic`.

    state = hvd.elastic.TorchState(model, optimizer, batch=0, epoch=0)

    @hvd.elastic.run
    def train(state):
        for state.epoch in range(state.epoch, epochs):
            ...
            state.commit()

    train(state)

If a rank is lost, the remaining ranks go back to the last commit, get new numbers, and continue. If hosts
come or go, all ranks continue from where they are.
"""

from __future__ import annotations

from typing import Any, Callable

from peal.horovod.elastic.common import ObjectState, State, run_fn
from peal.horovod.elastic.rounds import reset
from peal.horovod.elastic.sampler import ElasticSampler
from peal.horovod.elastic.state import TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for a function whose first argument is a state. It synchronizes the state with rank 0
    before each call of the function.

    - HorovodInternalError, such as a lost rank: restores the last commit and calls the function again.
    - HostsUpdatedInterrupt, from `state.commit()`: calls the function again with the present state.
    - HorovodMismatchError: passes through, because a further try would fail in the same way. So does the
      tenth error in a row without a commit.
    """
    return run_fn(func, reset)
