"""States and the loop of an elastic worker: `horovod.common.elastic`."""

from __future__ import annotations

import copy
import functools
import queue
from typing import Any, Callable

from peal.horovod import assignment
from peal.horovod.exceptions import HorovodInternalError, HorovodMismatchError, HostsUpdatedInterrupt

# A program that fails in the same way after each restart must end.
RESTARTS_WITHOUT_COMMIT = 10

REMOVED = 2  # the bit of removed hosts in an update


class State:
    """What the ranks of an elastic job keep equal. Subclasses define save, restore and sync.

    bcast_object: broadcasts an object from rank 0. get_rank: the rank of this process.
    """

    def __init__(self, bcast_object: Callable[[Any], Any], get_rank: Callable[[], int]) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages: queue.Queue[tuple[float, int]] = queue.Queue()
        self._reset_callbacks: list[Callable[[], Any]] = []
        self._commits = 0

    def register_reset_callbacks(self, callbacks: list[Callable[[], Any]]) -> None:
        """Functions to call after each change of the ranks, such as to scale the learning rate. They are
        called after init, and before the state is synchronized."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self._host_messages = queue.Queue()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Announces a change of the hosts: update_res is 1 for added, 2 for removed, 3 for both."""
        self._host_messages.put((timestamp, update_res))

    def commit(self) -> None:
        """Saves the state, and interrupts the function if the hosts have changed. All ranks call it
        together."""
        self.save()
        self._commits += 1
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks if rank 0 knows of a change of the hosts."""
        changes = assignment.host_changes() if self._rank() == 0 else 0
        while not self._host_messages.empty():
            changes |= self._host_messages.get()[1]
        changes = self._bcast_object(changes)
        if changes:
            raise HostsUpdatedInterrupt(changes == REMOVED)

    def save(self) -> None:
        """Keeps a copy of the state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Goes back to the saved copy."""
        raise NotImplementedError

    def sync(self) -> None:
        """Takes over the state of rank 0."""
        raise NotImplementedError

    def reset(self) -> None:
        """For subclasses: called after a change of the ranks, before the callbacks."""


class ObjectState(State):
    """A state of Python objects: the keyword arguments, which become attributes. Copies are deep."""

    def __init__(self, bcast_object: Callable[[Any], Any], get_rank: Callable[[], int],
                 **kwargs: Any) -> None:
        self._saved_state = copy.deepcopy(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        super().__init__(bcast_object, get_rank)

    def save(self) -> None:
        self._saved_state = copy.deepcopy(self._values())

    def restore(self) -> None:
        self._set(copy.deepcopy(self._saved_state))

    def sync(self) -> None:
        if self._saved_state:
            self._set(self._bcast_object(self._values()))
            ObjectState.save(self)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._saved_state}

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)


def run_fn(func: Callable[..., Any], reset: Callable[[], None]) -> Callable[..., Any]:
    """A function that calls ``func(state, ...)`` until it returns, as `elastic.run` says. `reset` joins the
    next group."""

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        restarts = _Restarts(state)
        must_reset = False
        while True:
            try:
                if must_reset:
                    reset()
                    state.on_reset()
                # Also after hosts were only removed: a rank may be new, and no rank may repeat samples.
                state.sync()
                assignment.mark_synchronized()
                return func(state, *args, **kwargs)
            except HorovodMismatchError:
                raise
            except HorovodInternalError:
                restarts.count_or_raise()
                state.restore()
            except HostsUpdatedInterrupt:
                pass
            must_reset = True

    return wrapper


class _Restarts:
    """Counts errors in a row without a commit between them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._count = 0
        self._commits = getattr(state, "_commits", 0)

    def count_or_raise(self) -> None:
        """Called while an error is handled. Raises this error if there were too many."""
        commits = getattr(self._state, "_commits", 0)
        self._count = 1 if commits != self._commits else self._count + 1
        self._commits = commits
        if self._count >= RESTARTS_WITHOUT_COMMIT:
            raise
