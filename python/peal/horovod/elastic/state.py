"""The state of a training in torch: `horovod.torch.elastic.state`."""

from __future__ import annotations

import copy
from typing import Any

import torch

from peal.horovod.elastic.common import ObjectState
from peal.horovod.elastic.sampler import ElasticSampler
from peal.horovod.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from peal.horovod.mpi_ops import rank


class StateHandler:
    """Saves, restores and synchronizes a value of one kind. Write a subclass for your own kind, and add it
    by `set_handler_registry`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """The program replaces the value."""
        self.value = value
        self.save()


class _WithStateDict(StateHandler):
    """A value with state_dict and load_state_dict."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        # A copy, because optimizers keep the tensors that they load, and change them.
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self) -> None:
        self.value.load_state_dict(broadcast_object(self.value.state_dict()))
        self.save()


class ModelStateHandler(_WithStateDict):
    def sync(self) -> None:
        state = self.value.state_dict()
        tensors = {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
        broadcast_parameters(tensors, root_rank=0)
        others = {name: value for name, value in state.items() if name not in tensors}
        if others:  # extra state of modules
            self.value.load_state_dict({**tensors, **broadcast_object(others)})
        self.save()


class OptimizerStateHandler(_WithStateDict):
    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class SchedulerStateHandler(_WithStateDict):
    """For learning rate schedulers."""


class SamplerStateHandler(_WithStateDict):
    """For `ElasticSampler`."""


_handler_registry: list[tuple[type, type[StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (torch.optim.lr_scheduler.LRScheduler, SchedulerStateHandler),
    (torch.optim.lr_scheduler.ReduceLROnPlateau, SchedulerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> list[tuple[type, type[StateHandler]]]:
    """Pairs of a class and the handler for its objects. The first match counts."""
    return _handler_registry


def set_handler_registry(registry: list[tuple[type, type[StateHandler]]]) -> None:
    global _handler_registry
    _handler_registry = registry


class TorchState(ObjectState):
    """The state of a training. `model`, `optimizer` and the keyword arguments become attributes. Models,
    optimizers, schedulers and samplers have handlers; other values are objects, which are pickled and deeply
    copied."""

    _handlers: dict[str, StateHandler]

    def __init__(self, model: torch.nn.Module | None = None,
                 optimizer: torch.optim.Optimizer | None = None, **kwargs: Any) -> None:
        kwargs.update(model=model, optimizer=optimizer)
        handlers = {name: handler for name, value in kwargs.items()
                    if (handler := _handler_for(value)) is not None}
        object.__setattr__(self, "_handlers", {})
        for name, handler in handlers.items():
            setattr(self, name, handler.value)
        self._handlers.update(handlers)
        super().__init__(bcast_object=broadcast_object, get_rank=rank,
                         **{name: value for name, value in kwargs.items() if name not in handlers})

    def save(self) -> None:
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._handlers:
            self._handlers[name].set_value(value)
        super().__setattr__(name, value)


def _handler_for(value: Any) -> StateHandler | None:
    for kind, handler in _handler_registry:
        if isinstance(value, kind):
            return handler(value)
    return None
