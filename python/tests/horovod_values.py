"""Tensors, the formulas of peal.horovod's operations, and checks of results on ranks."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import torch
from torch import Tensor

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
          torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.complex64: 1e-6,
             torch.float64: 1e-12, torch.complex128: 1e-12}
AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)


def values(rank: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Small numbers that differ between ranks and places. Computed alike on all ranks."""
    count = int(torch.tensor(shape).prod())
    base = torch.arange(count) * 7 % 4 + 1 + rank
    if dtype == torch.bool:
        return (base % 2 == 0).reshape(shape)
    if dtype.is_complex:
        return (base - 1j * rank).to(dtype).reshape(shape)
    sign = 1 if dtype == torch.uint8 else -1
    return torch.where(torch.arange(count) % 3 == 0, sign * base, base).to(dtype).reshape(shape)


def has_meaning(op: int, dtype: torch.dtype) -> bool:
    if op == AVERAGE:
        return dtype != torch.bool
    if op == ADASUM:
        return floats(dtype)
    return not (op in (MIN, MAX) and dtype.is_complex)


def reduced(parts: list[Tensor], op: int, before: float = 1.0, after: float = 1.0) -> Tensor:
    """The formula of allreduce, in wide types."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        stack = torch.stack(parts)
        return stack.any(0) if op in (SUM, MAX) else stack.all(0)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    scaled = [rounded(part.to(wide) * before, dtype) for part in parts]
    stack = torch.stack(scaled)
    if op == ADASUM:
        return adasum(scaled).to(dtype)
    result = {AVERAGE: lambda: stack.sum(0), SUM: lambda: stack.sum(0), PRODUCT: lambda: stack.prod(0),
              MIN: lambda: stack.amin(0), MAX: lambda: stack.amax(0)}[op]()
    after = after / len(parts) if op == AVERAGE else after
    result = rounded(result * after if after != 1 / 3 else result / 3, dtype)
    return result.to(dtype) if floats(dtype) else result.to(torch.int64).to(dtype)  # integers wrap around


def adasum(parts: list[Tensor]) -> Tensor:
    """Combines pairs of ranks, by the binary digits of the ranks. First combines the ranks beyond a power of two
    with the first ranks."""
    parts = list(parts)
    power = 1 << (len(parts).bit_length() - 1)
    for extra in range(power, len(parts)):
        parts[extra - power] = adasum_of_two(parts[extra - power], parts[extra])
    parts = parts[:power]
    while len(parts) > 1:
        parts = [adasum_of_two(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
    return parts[0]


def adasum_of_two(a: Tensor, b: Tensor) -> Tensor:
    dot = torch.vdot(a.flatten(), b.flatten()).real
    return (1 - dot / (2 * a.norm() ** 2)) * a + (1 - dot / (2 * b.norm() ** 2)) * b


def share(rows: int, size: int, rank: int) -> slice:
    """The rows of this rank after a reducescatter."""
    each, longer = divmod(rows, size)
    begin = rank * each + min(rank, longer)
    return slice(begin, begin + each + (rank < longer))


def floats(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    return value if floats(dtype) else value.trunc()


def layouts(tensor: Tensor) -> Iterator[Tensor]:
    """The same values with other strides."""
    yield tensor.clone()
    yield tensor.t().contiguous().t()
    wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1], dtype=tensor.dtype)
    wide[..., ::2] = tensor
    yield wide[..., ::2]


class Checks:
    """Collects differences from the expected values."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def equal(self, got: Any, expected: Any, what: str) -> None:
        if isinstance(expected, list) and any(isinstance(one, Tensor) for one in expected):
            self.equal(len(got), len(expected), f"the number of {what}")
            for i, (one, other) in enumerate(zip(got, expected)):
                self.equal(one, other, f"{what}[{i}]")
            return
        if isinstance(expected, Tensor):
            good = (isinstance(got, Tensor) and got.dtype == expected.dtype and got.shape == expected.shape
                    and torch.allclose(widened(got), widened(expected), rtol=TOLERANCE.get(got.dtype, 0.0),
                                       atol=TOLERANCE.get(got.dtype, 0.0)))
        else:
            good = bool(got == expected)
        if not good:
            self.failures.append(f"{what}: got {got}, expected {expected}")

    def raises(self, kind: type[BaseException], words: list[str], function: Callable[[], Any], what: str,
               exactly: bool = False) -> None:
        try:
            got: Any = function()
        except kind as error:
            text = str(error)
            if any(word not in text for word in words) or (exactly and type(error) is not kind):
                self.failures.append(f"{what}: {type(error).__name__}: {text}")
        except BaseException as error:
            self.failures.append(f"{what}: {type(error).__name__} instead of {kind.__name__}: {error}")
        else:
            self.failures.append(f"{what}: returned {got}")


def widened(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64)
