"""Digits for training: from MNIST's files if a folder is given, else drawn, without a download."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import torch
from torch.utils.data import TensorDataset


def load(folder: str | None, count: int = 2000) -> TensorDataset:
    """(image, label) pairs; images are 1 x 28 x 28, normalised with the usual values for MNIST."""
    images, labels = _read(Path(folder), count) if folder else _draw(count)
    return TensorDataset((images.double() - 0.1307) / 0.3081, labels)


def _read(folder: Path, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """MNIST's test digits, in the IDX format: a magic number, sizes, and bytes."""
    def content(name: str) -> bytes:
        plain, packed = folder / name, folder / f"{name}.gz"
        return plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())

    pixels, marks = content("t10k-images-idx3-ubyte"), content("t10k-labels-idx1-ubyte")
    number = min(count, struct.unpack(">I", pixels[4:8])[0])
    images = torch.frombuffer(bytearray(pixels[16:16 + number * 784]), dtype=torch.uint8)
    labels = torch.frombuffer(bytearray(marks[8:8 + number]), dtype=torch.uint8)
    return images.reshape(number, 1, 28, 28).float() / 255, labels.long()


def _draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws digits: each digit has its random pattern, shifted a little, with noise."""
    random = torch.Generator().manual_seed(0)
    patterns = torch.rand(10, 1, 20, 20, generator=random).round()
    labels = torch.randint(10, (count,), generator=random)
    images = 0.2 * torch.rand(count, 1, 28, 28, generator=random)
    for image, label, (down, right) in zip(images, labels,
                                           torch.randint(8, (count, 2), generator=random)):
        image[:, down:down + 20, right:right + 20] += 0.8 * patterns[label]
    return images, labels
