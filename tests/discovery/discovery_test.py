"""Where cmake/PealTorch.cmake finds LibTorch, with fake packages and Pythons.

Called by ctest with the path of cmake.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv.pop(1)
MODULE = pathlib.Path(__file__).resolve().parents[2] / "cmake/PealTorch.cmake"
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(discovery LANGUAGES NONE)
include({MODULE})
message(STATUS "found: ${{PEAL_TORCH_CHOICE}}")
get_target_property(definitions peal::torch INTERFACE_COMPILE_DEFINITIONS)
message(STATUS "definitions: ${{definitions}}")
"""
VERSION = """
set(PACKAGE_VERSION {})
if(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""
TARGETS = """
set_target_properties(c10_cuda PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "NOT_OF_THIS"
)
set_target_properties(torch_cpu PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "{}"
  INTERFACE_LINK_LIBRARIES "c10"
)
set_target_properties(torch_cpu_library PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "NOR_OF_THIS"
)
"""
WHOLE = ("include/torch/csrc/api/include/torch/torch.h",
         "lib/libtorch.so", "lib/libtorch_cpu.so", "lib/libc10.so")


class Discovery(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("CMakeLists.txt", PROJECT)

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def torch(self, name, version="2.13.0"):
        """Makes a package; returns its torch.utils.cmake_prefix_path."""
        for file in WHOLE:
            self.write(f"{name}/{file}", "")
        prefix = f"{name}/share/cmake"
        self.write(f"{prefix}/Torch/TorchConfigVersion.cmake", VERSION.format(version))
        self.write(f"{prefix}/Torch/TorchConfig.cmake", 'message(FATAL_ERROR "no CUDA toolkit")')
        return self.folder / prefix

    def python(self, name, prefix):
        """Makes a Python whose torch has its package at `prefix`; a Python without torch for None."""
        self.write(name, f"#!/bin/sh\necho {prefix}\n" if prefix else "#!/bin/sh\nexit 1\n", 0o755)

    def active_python(self, prefix):
        self.python("bin/python3", prefix)

    def venv(self, prefix):
        self.python(".venv/bin/python", prefix)

    def configure(self, *arguments, **variables):
        environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", **variables}
        return subprocess.run(
            [CMAKE, "-S", self.folder, "-B", self.folder / "build", "-G", "Ninja", *arguments],
            env=environment, timeout=300, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finds(self, prefix, *arguments, **variables):
        run = self.configure(*arguments, **variables)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn(f"found: {prefix}/Torch\n", run.stdout)
        return run.stdout

    def fails(self, *arguments, **variables):
        """The output of a configuration that fails, without the line breaks of cmake."""
        run = self.configure(*arguments, **variables)
        self.assertNotEqual(run.returncode, 0, run.stdout)
        return " ".join(run.stdout.split())

    def everywhere(self):
        """One package for the user to name, one of the active Python, one in .venv."""
        named, active, venv = self.torch("named"), self.torch("active"), self.torch("in_venv")
        self.active_python(active)
        self.venv(venv)
        return named, active, venv

    def test_the_users_choice_comes_first_in_each_way_to_name_it(self):
        named, _, _ = self.everywhere()
        for name, value in ("Torch_DIR", named / "Torch"), ("CMAKE_PREFIX_PATH", named):
            for arguments, variables in ((f"-D{name}={value}",), {}), ((), {name: str(value)}):
                with self.subTest(name, arguments=arguments):
                    self.finds(named, "--fresh", *arguments, **variables)

    def test_the_active_python_comes_second(self):
        _, active, _ = self.everywhere()
        self.finds(active)

    def test_the_venv_comes_last(self):
        _, _, venv = self.everywhere()
        self.active_python(None)
        self.finds(venv)

    def test_a_version_that_is_too_old_is_skipped(self):
        self.active_python(self.torch("old", "2.10.9"))
        self.venv(self.torch("oldest", "2.11.0"))
        self.finds(self.folder / "oldest/share/cmake")

    def test_the_choice_is_kept_when_the_environment_changes_later(self):
        _, active, _ = self.everywhere()
        self.finds(active)
        self.active_python(None)
        self.finds(active)

    def test_a_torch_dir_that_is_gone_is_an_error_and_not_replaced(self):
        _, active, _ = self.everywhere()
        gone = self.folder / "gone/Torch"
        message = f"not found in Torch_DIR, which is {gone}. Set Torch_DIR"
        self.assertIn(message, self.fails(Torch_DIR=str(gone)))
        self.finds(active)
        for arguments in (f"-DTorch_DIR={gone}",), ():  # the second time Torch_DIR is in the cache
            output = self.fails(*arguments)
            self.assertIn(message, output)
            self.assertIn("-UTorch_DIR", output)
        self.finds(active, "-UTorch_DIR")

    def test_a_torch_dir_that_is_too_old_is_an_error_that_says_so(self):
        self.everywhere()
        old = self.torch("old", "2.10.9") / "Torch"
        message = f"Torch_DIR, which is {old}. LibTorch 2.10.9 in {old} is too old"
        self.assertIn(message, self.fails(Torch_DIR=str(old)))
        self.assertIn(message, self.fails(f"-DTorch_DIR={old}"))

    def test_the_definitions_are_those_of_its_torch_cpu(self):
        active = self.torch("active")
        self.active_python(active)
        for written, read in (("USE_DISTRIBUTED;USE_RPC", "USE_DISTRIBUTED;USE_RPC"), ("A=1", "A=1"),
                              ("\\$<TARGET_PROPERTY:c10,A>", "definitions-NOTFOUND")):
            with self.subTest(written):
                self.write("active/share/cmake/Caffe2/Caffe2Targets.cmake", TARGETS.format(written))
                self.assertIn(f"definitions: {read}\n", self.finds(active))

    def test_without_libtorch_the_error_says_what_to_do(self):
        self.active_python(None)
        output = self.fails()
        self.assertIn("scripts/bootstrap", output)
        self.assertIn("PEAL_TORCH=OFF", output)
        self.assertNotIn("too old", output)

    def test_if_all_are_too_old_they_are_named(self):
        old = self.torch("old", "2.10.9")
        self.active_python(old)
        self.assertIn(f"LibTorch 2.10.9 in {old}/Torch is too old", self.fails())

    def test_an_incomplete_one_is_an_error_that_names_the_missing_file(self):
        for file in WHOLE:
            with self.subTest(file):
                self.active_python(self.torch("active"))
                (self.folder / "active" / file).unlink()
                self.assertIn(f"lacks {self.folder}/active/{file}", self.fails("--fresh"))


if __name__ == "__main__":
    unittest.main()
