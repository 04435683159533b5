"""Modules that only some environments have. `import_torch()` at the top of a test file skips the file
if torch is not installed; a plain import would fail."""

from __future__ import annotations

import importlib.util
import unittest

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
HAS_SAFETENSORS = importlib.util.find_spec("safetensors") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None

numpy_wanted = unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
torch_wanted = unittest.skipUnless(HAS_TORCH, "torch is not installed")


def import_torch() -> None:
    if not HAS_TORCH:
        raise unittest.SkipTest("torch is not installed")
