"""A sampler that continues after a change of the ranks: `horovod.torch.elastic.sampler`."""

from __future__ import annotations

import random
from itertools import cycle, islice
from typing import Any, Iterator, Sized

import torch.utils.data

from peal.horovod.mpi_ops import is_initialized, rank, size


class ElasticSampler(torch.utils.data.Sampler[int]):
    """Gives each rank a part of the samples that the epoch has not used yet.

    1. Put the sampler into the `TorchState`.
    2. Call `record_batch` after each batch, on all ranks alike.
    3. Call `set_epoch` at the end of each epoch, not at its begin.

    All ranks get the same number of samples: if the samples cannot be divided evenly, the first ones of the
    remainder are repeated.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.num_replicas = 0
        self.rank = 0
        self.remaining_indices: list[int] = []
        self.num_samples = 0
        self.total_size = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: all samples are unused, and `epoch` is a part of the seed of their order."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Each rank has used a batch of this size."""
        # Beyond the end are repeated samples.
        self.processed_num = min(self.processed_num + batch_size * self.num_replicas, len(self.dataset))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        # A state may be restored between two rounds. Its sync divides the samples in the next round.
        if is_initialized():
            self.reset()

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def reset(self) -> None:
        """Divides the unused samples among the present ranks."""
        self.num_replicas = size()
        self.rank = rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num:]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        padded = list(islice(cycle(self.remaining_indices), self.total_size))
        return iter(padded[self.rank::self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
