"""The names of Horovod's modules for the modules of `peal.horovod`."""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Sequence

_FOLDER = Path(__file__).parent / "stand_in"  # a package horovod that calls install()

# horovod.X is peal.horovod.Y.
_MODULES = {
    "torch": "",
    "torch.compression": "compression",
    "torch.elastic": "elastic",
    "torch.elastic.sampler": "elastic.sampler",
    "torch.elastic.state": "elastic.state",
    "torch.functions": "functions",
    "torch.mpi_ops": "mpi_ops",
    "torch.optimizer": "optimizer",
    "torch.sync_batch_norm": "sync_batch_norm",
    "common.elastic": "elastic.common",
    "common.exceptions": "exceptions",
    "common.process_sets": "process_sets",
    "common.util": "util",
    "runner": "runner",
}


# Horovod for other frameworks and clusters.
_NOT_HERE = {f"horovod.{name}" for name in ("keras", "mxnet", "ray", "spark", "tensorflow")}


class _NotBuilt(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of Horovod that peal does not have. Their import fails with an explanation, as in a Horovod
    that was built for torch only."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in _NOT_HERE else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        raise ImportError(f"Extension {name} has not been built: peal has horovod.torch only", name=name)


def install() -> None:
    """From now on, ``import horovod.torch as hvd`` in this process imports `peal.horovod`, and ``import
    horovod`` a module with `run` and `__version__`. The same holds in processes that multiprocessing
    starts. An installed Horovod is hidden.

    Errors: RuntimeError (Horovod itself has been imported already).
    """
    ours = importlib.import_module("peal.horovod")
    present = sys.modules.get("horovod")
    if present is not None and not _is_ours(present):
        raise RuntimeError("horovod has been imported already: call peal.horovod.install() before")
    top = _module("horovod")
    common = _module("horovod.common")
    vars(top).update(__version__=ours.__version__, run=ours.run, common=common)
    for name, own in _MODULES.items():
        module = importlib.import_module(f"peal.horovod.{own}") if own else ours
        sys.modules[f"horovod.{name}"] = module
        parent, _, last = name.rpartition(".")
        if parent in ("", "common"):
            setattr(common if parent else top, last, module)
    if not any(isinstance(one, _NotBuilt) for one in sys.meta_path):
        sys.meta_path.append(_NotBuilt())
    if str(_FOLDER) not in sys.path:
        sys.path.append(str(_FOLDER))  # multiprocessing gives sys.path to its processes


def _module(name: str) -> ModuleType:
    module = ModuleType(name, "Horovod's name for a part of peal.horovod.")
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    sys.modules[name] = module
    return module


def _is_ours(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or Path(file).parent.parent == _FOLDER
