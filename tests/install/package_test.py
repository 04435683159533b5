"""What find_package(peal ...) says and leaves, for each way to ask, where LibTorch is and where it is not.

Called by ctest with the path of cmake, the folder into which install_test.cmake has installed this
build, the compiler, and the folder of the LibTorch that peal was built with, if it was.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, PREFIX, COMPILER, TORCH = sys.argv[1:5]
del sys.argv[1:5]
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
{}
foreach(target peal::peal peal::train)
  if(TARGET ${{target}})
    message(STATUS "has ${{target}}")
  endif()
endforeach()
message(STATUS "peal: ${{peal_FOUND}}, train: ${{peal_train_FOUND}}")
message(STATUS "reason: ${{peal_NOT_FOUND_MESSAGE}}")
"""
NO_TORCH = "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON"
ADVICE = "-DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')"


class User(unittest.TestCase):
    """A project that asks for peal, with a Python of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=pathlib.Path(PREFIX).parent)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.python("exit 1")

    def python(self, script):
        """The active Python of those who configure; "exit 1" is one without torch."""
        path = self.folder / "bin/python3"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def configure(self, calls, *arguments, prefix=PREFIX):
        (self.folder / "CMakeLists.txt").write_text(PROJECT.format(calls))
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("CMAKE_PREFIX_PATH", "Torch_DIR")}
        environment["PATH"] = f"{self.folder}/bin:{environment['PATH']}"
        return subprocess.run(
            [CMAKE, "-S", self.folder, "-B", self.folder / "build", "-G", "Ninja",
             f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={prefix}", *arguments],
            env=environment, timeout=60, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)

    def output(self, calls, *arguments, **options):
        """Of a configuration that ends well, without the breaks that cmake puts into long lines."""
        run = self.configure(calls, *arguments, **options)
        self.assertEqual(run.returncode, 0, run.stdout)
        return " ".join(run.stdout.split())

    def failure(self, calls, *arguments, **options):
        run = self.configure(calls, *arguments, **options)
        self.assertNotEqual(run.returncode, 0, run.stdout)
        return " ".join(run.stdout.split())


class Package(User):
    def without_train(self):
        """What an installation of a peal that was built with PEAL_TORCH=OFF has; links, no copies."""
        prefix = self.folder / "core"
        shutil.copytree(PREFIX, prefix, copy_function=os.link)
        for file in prefix.rglob("pealTrainTargets*.cmake"):
            file.unlink()
        return prefix

    def test_without_components_no_libtorch_is_looked_for(self):
        output = self.output("find_package(peal REQUIRED)", NO_TORCH)
        self.assertIn("has peal::peal", output)
        self.assertNotIn("LibTorch", output)

    def test_an_installation_without_train_says_so(self):
        prefix = self.without_train()
        reason = "built with PEAL_TORCH=OFF, so it has no train"
        self.assertIn(reason, self.failure("find_package(peal REQUIRED COMPONENTS train)", prefix=prefix))
        output = self.output("find_package(peal REQUIRED OPTIONAL_COMPONENTS train)", prefix=prefix)
        self.assertIn(reason, output)
        self.assertIn("peal: 1, train: FALSE", output)

    def test_an_unknown_component_is_named_with_those_that_there_are(self):
        reason = 'peal has no component "gpu": the only one is train'
        self.assertIn(reason, self.failure("find_package(peal REQUIRED COMPONENTS gpu)"))
        output = self.output("find_package(peal QUIET COMPONENTS gpu)")
        self.assertIn(f"peal: 0, train: -- reason: {reason}", output)
        output = self.output("find_package(peal REQUIRED OPTIONAL_COMPONENTS gpu)")
        self.assertIn("has peal::peal", output)
        self.assertIn("peal: 1, train:", output)

    def test_a_library_that_peal_links_and_that_is_missing_is_fatal_only_where_peal_is_required(self):
        (self.folder / "bin/pkg-config").write_text(
            '#!/bin/sh\ncase "$*" in *libhwy*) exit 1;; *--version*) echo 1.8;; *) exit 0;; esac\n')
        (self.folder / "bin/pkg-config").chmod(0o755)
        self.assertIn("peal: 0, train: -- reason: pkg-config does not find libhwy",
                      self.output("find_package(peal QUIET)"))
        self.assertIn("does not find libhwy", self.failure("find_package(peal REQUIRED)"))


@unittest.skipUnless(TORCH, "this peal was built without LibTorch")
class Train(User):
    def test_libtorch_that_is_missing_is_fatal_where_train_is_required(self):
        output = self.failure("find_package(peal REQUIRED COMPONENTS train)", NO_TORCH)
        self.assertIn("train needs LibTorch", output)
        self.assertIn(ADVICE, output)
        self.assertIn(TORCH, output)
        self.assertNotIn("scripts/bootstrap", output)

    def test_libtorch_that_is_missing_leaves_no_peal_where_train_was_asked_for(self):
        output = self.output("find_package(peal QUIET COMPONENTS train)", NO_TORCH)
        self.assertIn("peal: 0, train: FALSE -- reason: train needs LibTorch", output)
        self.assertEqual(output.count("LibTorch"), 1, output)  # QUIET: only what the project printed
        output = self.output("find_package(peal COMPONENTS train)", NO_TORCH)
        self.assertIn("CMake Warning", output)
        self.assertIn(ADVICE, output)

    def test_libtorch_that_is_missing_costs_only_train_where_it_is_optional(self):
        for calls in ("find_package(peal REQUIRED OPTIONAL_COMPONENTS train)",
                      "find_package(peal REQUIRED)\nfind_package(peal OPTIONAL_COMPONENTS train)",
                      "find_package(peal QUIET COMPONENTS train)\nfind_package(peal REQUIRED)"):
            with self.subTest(calls):
                output = self.output(
                    calls + "\nfile(WRITE ${CMAKE_BINARY_DIR}/a.cpp)"
                    "\nadd_library(a ${CMAKE_BINARY_DIR}/a.cpp)\ntarget_link_libraries(a peal::peal)",
                    NO_TORCH)
                self.assertIn("has peal::peal", output)
                self.assertNotIn("has peal::train", output)
                self.assertIn("peal: 1, train: ", output)

    def test_an_optional_train_that_is_missing_is_told_and_by_quiet_not(self):
        output = self.output("find_package(peal OPTIONAL_COMPONENTS train)", NO_TORCH)
        self.assertIn("peal without train: train needs LibTorch", output)
        self.assertNotIn("Warning", output)
        output = self.output("find_package(peal QUIET OPTIONAL_COMPONENTS train)", NO_TORCH)
        self.assertNotIn("LibTorch", output)

    def test_the_libtorch_that_peal_was_built_with_is_found_last(self):
        output = self.output("find_package(peal REQUIRED COMPONENTS train)")
        self.assertIn("has peal::train", output)
        self.assertIn(f": {TORCH} (peal was built with", output)

    def test_the_active_pythons_libtorch_comes_before_it(self):
        package = self.folder / "active/Torch"
        package.mkdir(parents=True)
        (package / "TorchConfig.cmake").write_text("")
        (package / "TorchConfigVersion.cmake").write_text(
            "set(PACKAGE_VERSION 99.0)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
        self.python(f"echo {package.parent}")
        output = self.output("find_package(peal REQUIRED COMPONENTS train)")
        self.assertIn(f"LibTorch 99.0: {package} (peal was built with", output)

    def test_a_train_that_is_found_quietly_says_nothing(self):
        output = self.output("find_package(peal REQUIRED QUIET COMPONENTS train)")
        self.assertIn("has peal::train", output)
        self.assertNotIn("LibTorch", output)


if __name__ == "__main__":
    unittest.main()
