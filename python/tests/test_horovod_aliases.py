"""Unmodified programs of Horovod: the names of its modules, and ``python -m peal.horovod``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from needs import import_torch

import_torch()

from programs import with_path


class AliasesTest(unittest.TestCase):
    def run_python(self, *arguments: str, **environment: str) -> str:
        run = subprocess.run([sys.executable, *arguments], env={**os.environ, **environment},
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_every_module_that_users_import_is_there(self) -> None:
        program = [
            "import peal.horovod; peal.horovod.install(); peal.horovod.install()",
            "import horovod, horovod.torch as hvd",
            "import horovod.torch.mpi_ops, horovod.torch.sync_batch_norm, horovod.common.util, "
            "importlib.util",
            "from horovod.torch.compression import Compressor",
            "from horovod.torch.functions import broadcast_object",
            "from horovod.torch.optimizer import DistributedOptimizer",
            "from horovod.torch.elastic.sampler import ElasticSampler",
            "from horovod.torch.elastic.state import (get_handler_registry, set_handler_registry, "
            "StateHandler, ModelStateHandler, OptimizerStateHandler, SamplerStateHandler)",
            "from horovod.common.elastic import State, ObjectState, run_fn",
            "from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt, "
            "HorovodVersionMismatchError",
            "from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set",
            "from horovod.runner import run",
            "import horovod.torch.elastic",
            "assert hvd is peal.horovod and horovod.torch.mpi_ops.is_homogeneous",
            "assert horovod.run is run and importlib.util.find_spec('horovod')",
            "assert horovod.common.util.gloo_built() and horovod.torch.elastic.TorchState",
            "print(horovod.__version__)",
        ]
        self.assertEqual(self.run_python("-c", "\n".join(program)), "0.28.1\n")

    def test_an_imported_horovod_is_not_replaced(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "horovod.py").touch()
            program = ("import horovod, peal.horovod\n"
                       "try: peal.horovod.install()\nexcept RuntimeError as error: print(error)")
            self.assertIn("has been imported already", self.run_python("-c", program, PYTHONPATH=with_path(folder)))

    def test_a_script_and_a_module_run_unchanged_with_their_arguments(self) -> None:
        text = ("import sys, multiprocessing\n"
                "import horovod.torch as hvd\n"
                "def work(): import horovod.torch; print('child of', horovod.torch.__name__, flush=True)\n"
                "if __name__ == '__main__':\n"
                "    hvd.init()\n"
                "    print(sys.argv[1:], hvd.size(), __file__.endswith('program.py'), flush=True)\n"
                "    child = multiprocessing.get_context('spawn').Process(target=work)\n"
                "    child.start(); child.join()\n")
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "program.py")
            script.write_text(text)
            for how in ([str(script)], ["-m", "program"]):
                seen = self.run_python("-m", "peal.horovod", *how, "--lr", "1", PYTHONPATH=with_path(folder))
                self.assertEqual(seen, "['--lr', '1'] 1 True\nchild of peal.horovod\n")

    def test_the_program_needs_a_script(self) -> None:
        run = subprocess.run([sys.executable, "-m", "peal.horovod"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("usage: python -m peal.horovod", run.stderr)


if __name__ == "__main__":
    unittest.main()
