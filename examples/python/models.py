"""The networks that the examples train. They use double precision, so that the printed digits of a loss
do not depend on the order of additions, which backends may choose."""

from __future__ import annotations

import torch
from torch import nn


class Digits(nn.Module):
    """Two convolutions and two linear layers; the output is ten log probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 10, kernel_size=5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(10, 20, kernel_size=5), nn.MaxPool2d(2), nn.ReLU())
        self.layers = nn.Sequential(nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))
        self.double()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.convolutions(images).flatten(1)
        return torch.log_softmax(self.layers(features), dim=1)


class Block(nn.Module):
    """A layer to more features and a layer back, with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.down(torch.relu(self.up(x)))
        return x + y


def blocks(number: int, width: int) -> nn.Sequential:
    torch.manual_seed(7)
    return nn.Sequential(*(Block(width) for _ in range(number))).double()
