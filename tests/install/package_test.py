"""The messages and results of find_package(peal ...), for each way to call it, with and without LibTorch.

Arguments, from ctest: the path of cmake; the folder into which install_test.cmake has installed this
build; the compiler; the folder of LibTorch, empty if peal was built without it.
"""
import os
import pathlib
import re
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
message(STATUS "Torch_DIR: ${{Torch_DIR}}, in the cache: $CACHE{{Torch_DIR}}.")
"""
NO_TORCH = "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON"
ADVICE = "-DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')"


class User(unittest.TestCase):
    """A project that uses peal, with a separate fake Python."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=pathlib.Path(PREFIX).parent)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.python("exit 1")

    def python(self, script):
        """Sets the active Python of the user; "exit 1" is a Python without torch."""
        path = self.folder / "bin/python3"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def copied(self):
        """The installation in another folder, as hard links."""
        prefix = self.folder / "copied"
        shutil.copytree(PREFIX, prefix, copy_function=os.link)
        return prefix

    def configure(self, calls, *arguments, prefix=PREFIX, torch_dir=None):
        (self.folder / "CMakeLists.txt").write_text(PROJECT.format(calls))
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("CMAKE_PREFIX_PATH", "Torch_DIR")}
        environment["PATH"] = f"{self.folder}/bin:{environment['PATH']}"
        if torch_dir:
            environment["Torch_DIR"] = str(torch_dir)
        return subprocess.run(
            [CMAKE, "-S", self.folder, "-B", self.folder / "build", "-G", "Ninja",
             f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={prefix}", *arguments],
            env=environment, timeout=300, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)

    def output(self, calls, *arguments, **options):
        """The output of a configuration that succeeds, without the line breaks of cmake."""
        run = self.configure(calls, *arguments, **options)
        self.assertEqual(run.returncode, 0, run.stdout)
        return " ".join(run.stdout.split())

    def failure(self, calls, *arguments, **options):
        run = self.configure(calls, *arguments, **options)
        self.assertNotEqual(run.returncode, 0, run.stdout)
        return " ".join(run.stdout.split())


class Package(User):
    def without_train(self):
        """An installation of a peal that was built with PEAL_TORCH=OFF."""
        prefix = self.copied()
        for file in prefix.rglob("pealTrainTargets*.cmake"):
            file.unlink()
        return prefix

    def test_libtorch_is_not_searched_without_components(self):
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

    def test_an_unknown_component_is_named_with_the_known_ones(self):
        reason = 'peal has no component "gpu": the only one is train'
        self.assertIn(reason, self.failure("find_package(peal REQUIRED COMPONENTS gpu)"))
        output = self.output("find_package(peal QUIET COMPONENTS gpu)")
        self.assertIn(f"peal: 0, train: -- reason: {reason}", output)
        output = self.output("find_package(peal REQUIRED OPTIONAL_COMPONENTS gpu)")
        self.assertIn("has peal::peal", output)
        self.assertIn("peal: 1, train:", output)

    def test_a_missing_library_is_named_and_fatal_only_if_peal_is_required(self):
        for missing, other in ("libhwy", "hwloc"), ("hwloc", "libhwy"):
            with self.subTest(missing):
                script = self.folder / "bin/pkg-config"
                script.write_text(
                    f'#!/bin/sh\ncase "$*" in *{missing}*) exit 1;; *--version*) echo 1.8;; esac\n')
                script.chmod(0o755)
                output = self.output("find_package(peal QUIET)", "--fresh")
                self.assertIn(f"peal: 0, train: -- reason: pkg-config does not find {missing}", output)
                self.assertNotIn(f"does not find {other}", output)
                self.assertIn(f"does not find {missing}", self.failure("find_package(peal REQUIRED)"))


@unittest.skipUnless(TORCH, "this peal was built without LibTorch")
class Train(User):
    def test_missing_libtorch_is_fatal_if_train_is_required(self):
        output = self.failure("find_package(peal REQUIRED COMPONENTS train)", NO_TORCH)
        self.assertIn("train needs LibTorch", output)
        self.assertIn(ADVICE, output)
        self.assertIn(TORCH, output)
        self.assertNotIn("scripts/bootstrap", output)

    def test_with_missing_libtorch_peal_is_not_found_if_train_is_requested(self):
        output = self.output("find_package(peal QUIET COMPONENTS train)", NO_TORCH)
        self.assertIn("peal: 0, train: FALSE -- reason: train needs LibTorch", output)
        self.assertEqual(output.count("LibTorch"), 1, output)  # QUIET: only what the project printed
        output = self.output("find_package(peal COMPONENTS train)", NO_TORCH)
        self.assertIn("CMake Warning", output)
        self.assertIn(ADVICE, output)

    def test_with_missing_libtorch_only_an_optional_train_is_missing(self):
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

    def test_a_missing_optional_train_is_reported_unless_quiet(self):
        output = self.output("find_package(peal OPTIONAL_COMPONENTS train)", NO_TORCH)
        self.assertIn("peal without train: train needs LibTorch", output)
        self.assertNotIn("Warning", output)
        output = self.output("find_package(peal QUIET OPTIONAL_COMPONENTS train)", NO_TORCH)
        self.assertNotIn("LibTorch", output)

    def test_with_quiet_a_found_train_prints_nothing(self):
        output = self.output("find_package(peal REQUIRED QUIET COMPONENTS train)")
        self.assertIn("has peal::train", output)
        self.assertNotIn("LibTorch", output)


FAKE_VERSION = """
set(PACKAGE_VERSION {})
if(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""
REQUIRED = "find_package(peal REQUIRED COMPONENTS train)"
OPTIONAL = "find_package(peal REQUIRED OPTIONAL_COMPONENTS train)"


@unittest.skipUnless(TORCH, "this peal was built without LibTorch")
class Choice(User):
    """The LibTorch that train uses, of several that mostly are fakes."""

    def setUp(self):
        super().setUp()
        text = (pathlib.Path(TORCH) / "TorchConfigVersion.cmake").read_text()
        self.built = re.search(r'PACKAGE_VERSION "([^"]*)"', text).group(1)
        major, minor = self.built.split(".")[:2]
        self.same = f"{major}.{minor}.99"
        self.other = f"{major}.{int(minor) + 1}.0"

    def torch(self, name, version):
        """The folder of a package that cannot be loaded, like one with CUDA on a machine without CUDA."""
        for file in ("include/torch/csrc/api/include/torch/torch.h", "lib/libtorch.so",
                     "lib/libtorch_cpu.so", "lib/libc10.so"):
            path = self.folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        package = self.folder / name / "share/cmake/Torch"
        package.mkdir(parents=True)
        (package / "TorchConfig.cmake").write_text('message(FATAL_ERROR "no CUDA toolkit")')
        (package / "TorchConfigVersion.cmake").write_text(FAKE_VERSION.format(version))
        return package

    def remembers_nothing(self):
        """An installation whose original LibTorch is gone: its prefix, and the folder of that LibTorch."""
        prefix = self.copied()
        config, = prefix.rglob("pealConfig.cmake")
        text = config.read_text()
        config.unlink()  # a hard link: the original stays unchanged
        gone = self.folder / "gone/Torch"
        self.assertIn(f"[[{TORCH}]]", text)
        config.write_text(text.replace(f"[[{TORCH}]]", f"[[{gone}]]"))
        return prefix, gone

    def took(self, package, output):
        self.assertIn(f": {package} (peal was built with {self.built})", output)
        self.assertIn("has peal::train", output)

    def test_the_order_is_the_users_choice_then_the_original_libtorch_then_the_active_python(self):
        named = self.torch("named", self.same)
        active = self.torch("active", self.same)
        self.python(f"echo {active.parent}")
        self.took(named, self.output(REQUIRED, f"-DTorch_DIR={named}"))
        self.took(named, self.output(REQUIRED, "--fresh", prefix=f"{PREFIX};{named.parent}"))
        self.took(TORCH, self.output(REQUIRED, "--fresh"))
        prefix, _ = self.remembers_nothing()
        self.took(active, self.output(REQUIRED, "--fresh", prefix=prefix))

    def test_the_callers_torch_is_the_same_and_the_cache_stays_unchanged(self):
        named = self.torch("named", self.same)
        twice = f"{REQUIRED}\n{REQUIRED}"
        for calls in REQUIRED, twice, OPTIONAL:
            with self.subTest(calls):
                output = self.output(calls, "--fresh", prefix=f"{PREFIX};{named.parent}")
                self.assertIn(f"Torch_DIR: {named}, in the cache: .", output)
        output = self.output(REQUIRED, f"-DTorch_DIR={named}")
        self.assertIn(f"Torch_DIR: {named}, in the cache: {named}.", output)
        output = self.output(OPTIONAL, NO_TORCH, "--fresh")
        self.assertIn("Torch_DIR: , in the cache: .", output)

    def test_a_copied_installation_is_used_from_its_new_folder(self):
        prefix = self.copied()
        output = self.output(
            REQUIRED + "\nget_target_property(headers peal::train_ddp INTERFACE_INCLUDE_DIRECTORIES)"
            "\nmessage(STATUS \"headers: ${headers}\")", prefix=prefix)
        self.took(TORCH, output)
        self.assertIn(f"headers: {prefix}/include", output)
        self.assertNotIn(f"{PREFIX}/", output)

    def test_an_original_libtorch_that_is_gone_is_reported(self):
        prefix, gone = self.remembers_nothing()
        output = self.failure(REQUIRED, prefix=prefix)
        self.assertIn(f"nor in {gone}, with which this peal was built and which is gone", output)
        self.assertIn(ADVICE, output)

    def test_a_torch_dir_that_is_gone_is_reported_and_not_replaced(self):
        gone = self.folder / "gone/Torch"
        message = f"not found in Torch_DIR, which is {gone}. Set Torch_DIR"
        self.assertIn(message, self.failure(REQUIRED, torch_dir=gone))
        for arguments in (f"-DTorch_DIR={gone}",), ():  # the second time Torch_DIR is in the cache
            output = self.failure(REQUIRED, *arguments)
            self.assertIn(message, output)
        output = self.output(OPTIONAL)
        self.assertIn("peal without train: train needs LibTorch", output)
        self.assertIn("peal: 1, train: FALSE", output)
        self.took(TORCH, self.output(REQUIRED, "-UTorch_DIR"))

    def test_a_libtorch_that_is_too_old_is_reported(self):
        old = self.torch("old", "1.0")
        message = f"LibTorch 1.0 in {old} is too old: peal needs 2.11 or newer."
        self.assertIn(f"Torch_DIR, which is {old}. {message}", self.failure(REQUIRED, f"-DTorch_DIR={old}"))
        self.took(TORCH, self.output(REQUIRED, "--fresh", prefix=f"{PREFIX};{old.parent}"))
        prefix, _ = self.remembers_nothing()
        self.assertIn(message, self.failure(REQUIRED, "--fresh", prefix=f"{prefix};{old.parent}"))
        self.python(f"echo {old.parent}")
        self.assertIn(message, self.failure(REQUIRED, "--fresh", prefix=prefix))

    def test_another_minor_version_is_rejected_with_both_versions(self):
        other = self.torch("other", self.other)
        prefix, gone = self.remembers_nothing()
        refusal = "train was built with LibTorch {} in {} and does not fit LibTorch {} in {}"
        with self.subTest("Torch_DIR"):
            output = self.failure(REQUIRED, f"-DTorch_DIR={other}")
            self.assertIn(refusal.format(self.built, TORCH, self.other, other), output)
            self.assertIn("Point Torch_DIR at the one that it was built with", output)
        with self.subTest("CMAKE_PREFIX_PATH"):
            output = self.failure(REQUIRED, "--fresh", prefix=f"{PREFIX};{other.parent}")
            self.assertIn(refusal.format(self.built, TORCH, self.other, other), output)
            self.assertIn("Point CMAKE_PREFIX_PATH at the one that it was built with", output)
        with self.subTest("python3"):
            self.python(f"echo {other.parent}")
            output = self.output(OPTIONAL, "--fresh", prefix=prefix)
            self.assertIn(refusal.format(self.built, gone, self.other, other), output)
            self.assertIn("peal: 1, train: FALSE", output)
        with self.subTest("the advice helps without --fresh"):
            named = self.torch("named", self.same)
            self.took(named, self.output(REQUIRED, prefix=f"{prefix};{named.parent}"))

    def test_an_incomplete_libtorch_prevents_only_train(self):
        broken = self.torch("broken", self.same)
        library = self.folder / "broken/lib/libc10.so"
        library.unlink()
        output = self.output(OPTIONAL, f"-DTorch_DIR={broken}")
        self.assertIn(f"the LibTorch in {broken} lacks {library}", output)
        self.assertIn("peal: 1, train: FALSE", output)


if __name__ == "__main__":
    unittest.main()
