"""Files of checkpoints between C++ and Python, kills during saves, and a full disk.

Called by ctest with the paths of peal_test_checkpoints (program.cpp) and peal_without, and the name
of one of the classes. The classes that need torch and safetensors end with SKIPPED if Python lacks them.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, WITHOUT, PART = sys.argv[1:4]
PATIENCE = 300  # seconds
SKIPPED = 77  # the exit code that ctest reads as skipped

if PART in ("Files", "Pickles", "Nets", "Shards"):
    try:
        import torch
        from safetensors.torch import load_file, save_file
    except ImportError as missing:
        print("SKIPPED:", missing)
        sys.exit(SKIPPED)


def call(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], timeout=PATIENCE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_program(self, *arguments):
        run = call(*arguments)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def same_bits(self, ours, theirs):
        self.assertEqual(ours.keys(), theirs.keys())
        for name, tensor in ours.items():
            self.assertEqual((tensor.dtype, tensor.shape), (theirs[name].dtype, theirs[name].shape), name)
            self.assertEqual(bits(tensor), bits(theirs[name]), name)


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()


def random_bits(dtype, *shape):
    """Any bits, such as those of NaNs."""
    count = torch.Size(shape).numel() * torch.empty((), dtype=dtype).element_size()
    most = 2 if dtype == torch.bool else 256
    return torch.randint(most, (count,), dtype=torch.uint8).view(dtype).reshape(shape)


def all_types():
    from safetensors.torch import _TYPES
    return {dtype for dtype in _TYPES.values() if dtype is not None and dtype != getattr(torch, "float4_e2m1fn_x2", None)}


class Files(InFolder):
    def test_cpp_reads_what_python_wrote_and_python_reads_what_cpp_wrote(self):
        torch.manual_seed(1)
        tensors = {"": torch.ones(1), "n\u00e4me \"with\"\nmore": torch.ones(2)}
        for dtype in all_types():
            tensors |= {f"{dtype} matrix": random_bits(dtype, 3, 2),
                        f"{dtype} number": random_bits(dtype),
                        f"{dtype} empty": random_bits(dtype, 2, 0)}
        save_file(tensors, self.folder / "python", {"format": "pt", "note": "text"})
        self.run_program("copy", self.folder / "python", self.folder / "cpp")
        self.same_bits(tensors, load_file(self.folder / "cpp"))

    def test_files_in_several_parts_are_one_model(self):
        tensors = {"a": torch.randn(3), "b": torch.randn(2, 2)}
        model = self.folder / "model"
        model.mkdir()
        for i, (name, tensor) in enumerate(tensors.items(), 1):
            save_file({name: tensor}, model / f"model-{i:05}-of-00002.safetensors")
        self.run_program("copy", model, self.folder / "cpp")
        self.same_bits(tensors, load_file(self.folder / "cpp"))

    def test_no_tensors(self):
        save_file({}, self.folder / "python")
        self.run_program("copy", self.folder / "python", self.folder / "cpp")
        self.assertEqual(load_file(self.folder / "cpp"), {})


class Pickles(InFolder):
    """Files of torch.save. The tensors of nested dicts have the names of all keys."""

    def read_by_cpp(self, value, **options):
        torch.save(value, self.folder / "python", **options)
        self.run_program("copy_pickled", self.folder / "python", self.folder / "cpp")
        return load_file(self.folder / "cpp")

    def test_a_state_dict(self):
        for state in (make_net().state_dict(), dict(make_net().state_dict())):
            self.same_bits(dict(state), self.read_by_cpp(state))

    def test_all_types_and_strides(self):
        base = torch.randn(4, 3, 2)
        tensors = {f"{dtype}": random_bits(dtype, 3, 2) for dtype in all_types()}
        tensors |= {"transposed": base.permute(2, 0, 1), "slice": base[1:3, 1], "empty": base[:0],
                    "number": base.sum(), "expanded": base[0, 0].expand(5, 2),
                    "parameter": torch.nn.Parameter(base), "tied": base}
        for protocol in (2, 3, 4, 5):
            self.same_bits(tensors, self.read_by_cpp(tensors, pickle_protocol=protocol))

    def test_a_checkpoint_of_python_with_its_optimizer(self):
        import argparse
        net = make_net()
        adam = torch.optim.Adam(net.parameters())
        net(torch.randn(5, 1, 4, 4)).sum().backward()
        adam.step()
        expected = {f"model.{name}": tensor for name, tensor in net.state_dict().items()}
        for i, fields in adam.state_dict()["state"].items():
            expected |= {f"optimizer.state.{i}.{field}": tensor for field, tensor in fields.items()}
        self.same_bits(expected, self.read_by_cpp(
            {"model": net.state_dict(), "optimizer": adam.state_dict(), "epoch": 3,
             "best": float("inf"), "options": argparse.Namespace(rate=0.1)}))

    def test_nothing_is_called(self):
        called = self.folder / "called"

        class Call:
            def __reduce__(self):
                return os.mkdir, (str(called),)

        self.same_bits({"w": torch.ones(1)}, self.read_by_cpp({"call": Call(), "w": torch.ones(1)}))
        self.assertFalse(called.exists())

    def test_the_old_format_is_refused_with_a_reason(self):
        torch.save(make_net().state_dict(), self.folder / "old", _use_new_zipfile_serialization=False)
        run = call("copy_pickled", self.folder / "old", self.folder / "cpp")
        self.assertEqual(run.returncode, 1)
        self.assertIn("this is not a whole file of torch.save since torch 1.6", run.stdout)


def make_net():
    """The net of program.cpp."""
    from collections import OrderedDict
    from torch import nn
    return nn.Sequential(OrderedDict([
        ("conv", nn.Conv2d(1, 2, 3)), ("norm", nn.BatchNorm2d(2)), ("relu", nn.ReLU()),
        ("flat", nn.Flatten()), ("out", nn.Linear(8, 3))]))


class Nets(InFolder):
    def test_python_continues_a_training_of_cpp(self):
        self.run_program("net", self.folder)
        saved = self.folder / "step-00000003"
        net = make_net()
        net.load_state_dict(load_file(saved / "model.safetensors"))  # all keys must match
        adam = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.1)
        fields = load_file(saved / "optimizer.safetensors")
        for name, parameter in net.named_parameters():
            adam.state[parameter] = {
                "step": fields[f"{name}.step"].float(),
                "exp_avg": fields[f"{name}.exp_avg"], "exp_avg_sq": fields[f"{name}.exp_avg_sq"]}
        after = load_file(self.folder / "after.safetensors")
        net(after.pop("input")).square().sum().backward()
        adam.step()
        self.assertEqual(after.keys(), net.state_dict().keys())
        for name, tensor in net.state_dict().items():
            torch.testing.assert_close(tensor, after[name])

    def test_the_rest_is_text_in_the_metadata(self):
        from safetensors import safe_open
        self.run_program("net", self.folder)
        with safe_open(self.folder / "step-00000003/training.safetensors", "pt") as file:
            metadata = file.metadata()
        self.assertEqual((metadata["step"], metadata["value.epoch"]), ("3", "2"))
        self.assertEqual(metadata["optimizer.optimizer.algorithm"], "Adam")
        self.assertEqual(float(metadata["optimizer.optimizer.group.0.option.weight_decay"]), 0.1)

    def test_cpp_runs_a_net_of_python(self):
        net = make_net()
        with torch.no_grad():
            net.norm.running_mean.uniform_()
            net.norm.running_var.uniform_(1, 2)
        net.eval()
        images = torch.randn(5, 1, 4, 4)
        save_file(net.state_dict() | {"input": images, "output": net(images).detach()},
                  self.folder / "net")
        self.run_program("run", self.folder / "net")


class Shards(InFolder):
    def test_torch_reads_the_shards_of_cpp(self):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint._consolidate_hf_safetensors import (
            consolidate_safetensors_files)
        tensors = {"w": torch.randn(7, 5), "b": torch.randn(2), "n": torch.tensor(3.5)}
        save_file(tensors, self.folder / "python")
        self.run_program("shard", self.folder / "python", self.folder, 3)
        shards = self.folder / "step-00000001/model"
        self.assertEqual(sorted(os.listdir(shards)),
                         [f"shard-0000{i}-model-00001-of-00001.safetensors" for i in (1, 2, 3)])
        loaded = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
        dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(str(shards)))
        self.same_bits(tensors, loaded)

        whole = self.folder / "whole"
        whole.mkdir()
        consolidate_safetensors_files(str(shards), str(whole), dict.fromkeys(tensors, 1))
        consolidated = load_file(whole / "model-00001-of-00001.safetensors")
        del tensors["n"], consolidated["n"]  # torch 2.13 writes zeros for a tensor without dimensions
        self.same_bits(tensors, consolidated)

    def test_cpp_reads_the_shards_of_torch(self):
        path = self.folder / "torch"
        script = pathlib.Path(__file__).with_name("save_by_torch.py")
        ranks = [subprocess.Popen([sys.executable, "-B", script, path, self.folder / "store", str(rank)])
                 for rank in range(2)]
        self.assertEqual([rank.wait(PATIENCE) for rank in ranks], [0, 0])
        self.assertEqual(len(os.listdir(path)), 2)
        self.run_program("copy", path, self.folder / "cpp")
        whole = torch.arange(35, dtype=torch.float32).view(7, 5)
        self.same_bits({"rows": whole, "columns": whole, "all": whole.half()},
                       load_file(self.folder / "cpp"))


class Kills(InFolder):
    """Processes that are killed at any moment of a save lose no checkpoint."""

    def kill(self, ranks):
        # The killed processes leave temporary folders of their own.
        places = {"TMPDIR": self.enterContext(tempfile.TemporaryDirectory())}
        run = call("kill", self.folder, 100, ranks, env=os.environ | places)
        print(run.stdout)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_100_kills_of_one_rank(self):
        self.kill(ranks=1)

    def test_100_kills_of_two_ranks(self):
        self.kill(ranks=2)


class Space(InFolder):
    """A save on a disk that becomes full."""

    def test_the_last_checkpoint_stays(self):
        if not shutil.which("unshare"):
            self.skipTest("there is no program unshare")
        inside = f"""
            mount -t tmpfs -o size=2m tmpfs {self.folder} 2> /dev/null || exit {SKIPPED}
            {PROGRAM} space {self.folder}
        """
        run = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inside],
                             timeout=PATIENCE, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        if run.returncode == SKIPPED or "unshare failed" in run.stdout:
            self.skipTest("this system allows no small file system: " + run.stdout)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("No space left on device", run.stdout)


class SystemCalls(InFolder):
    """Saves under a filter of the kernel that lets a system call fail."""

    def save(self, failure):
        run = subprocess.run([WITHOUT, failure, "--", PROGRAM, "net", self.folder], text=True,
                             timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode == 126:
            self.skipTest(run.stdout)
        return run

    def test_nothing_is_published_that_is_not_durable(self):
        run = self.save("fsync=EIO")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stdout, "resource: cannot write .*: Input/output error")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_system_without_locks_is_enough(self):
        self.assertEqual(self.save("flock=EPERM").returncode, 0)
        self.assertTrue((self.folder / "step-00000003").is_dir())

    def test_without_an_exchange_of_folders_the_old_checkpoint_stays(self):
        self.run_program("net", self.folder)
        before = (self.folder / "step-00000003").stat().st_ino
        run = self.save("renameat2=EINVAL")
        self.assertEqual(run.returncode, 1)
        self.assertIn("exists already, and this file system cannot replace a folder in one step",
                      run.stdout)
        self.assertEqual((self.folder / "step-00000003").stat().st_ino, before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["after.safetensors", "step-00000003"])


if __name__ == "__main__":
    result = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False).result
    if result.wasSuccessful() and result.skipped:
        print("SKIPPED:", result.skipped[0][1])
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful())
