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

    def error_of(self, code: int, *arguments: str) -> str:
        run = subprocess.run([sys.executable, "-W", "ignore", *arguments], capture_output=True, text=True)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stderr

    def test_modules_for_other_frameworks_explain_that_they_are_not_there(self) -> None:
        program = "import peal.horovod; peal.horovod.install(); import horovod.tensorflow as hvd"
        self.assertIn("ImportError: Extension horovod.tensorflow has not been built: peal has horovod.torch only",
                      self.error_of(1, "-c", program))

    def test_the_program_needs_a_script_that_can_be_read(self) -> None:
        run = ("-m", "peal.horovod")
        self.assertIn("usage: python -m peal.horovod", self.error_of(1, *run))
        with tempfile.TemporaryDirectory() as folder:
            for arguments, words in ((["/nowhere/x.py"], "can't open file '/nowhere/x.py': No such file or directory"),
                                     ([folder], f"the folder {folder} has no __main__.py"),
                                     (["-m", "nowhere.x"], "No module named 'nowhere'")):
                self.assertEqual(self.error_of(2, *run, *arguments), f"python -m peal.horovod: {words}\n")

    def test_the_traceback_of_a_program_begins_in_the_program(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "program.py")
            script.write_text("def work():\n    raise LookupError('no such row')\nwork()\n")
            lines = self.error_of(1, "-m", "peal.horovod", str(script)).splitlines()
        files = [line.strip() for line in lines if line.strip().startswith("File")]
        self.assertEqual(files, [f'File "{script}", line 3, in <module>', f'File "{script}", line 2, in work'])
        self.assertEqual(lines[-1], "LookupError: no such row")

    def test_a_worker_that_the_driver_removes_ends_with_one_line(self) -> None:
        program = ("import peal.horovod as hvd\n"
                   "from peal.horovod import assignment\n"
                   "class Driver:\n"
                   "    def elastic_next_round(self): raise RuntimeError('h[0] has been removed from elastic job')\n"
                   "assignment.hvd = Driver()\n"
                   "hvd.init()\n")
        self.assertEqual(self.error_of(1, "-c", program), "peal: h[0] has been removed from elastic job\n")


if __name__ == "__main__":
    unittest.main()
