"""How `peal bench` ends: with a backend that fails, by a signal, with a full disk. No process or file of a run may
remain. Called by ctest with the program.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

from program import Bench, PATIENCE, PROGRAM, QUICK


class ABackendThatFails(Bench):
    def test_is_named_when_its_result_is_wrong(self):
        self.break_gloo('connection.sendall(b"wrong index 3: got 1, expected 2\\n")')
        code, _, err, results = self.bench("all_reduce", "--bytes", "16", "--against", "gloo")
        self.assertEqual(code, 1)
        self.assertIn("gloo: wrong result of all_reduce of 16 B of f32 on 2 ranks", err)
        self.assertIn("rank 0: index 3: got 1, expected 2", err)
        self.assertEqual({result["backend"] for result in results}, {"peal", "probe"})

    def test_is_omitted_when_a_worker_dies_and_the_others_continue(self):
        self.break_gloo('sys.exit("the worker has failed")')
        code, _, err, results = self.bench("all_reduce", "barrier", "--bytes", "16", "--against", "gloo")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"gloo: in all_reduce .*: rank \d ended with exit code 1; it wrote:")
        self.assertIn("the worker has failed", err)
        self.assertEqual({result["op"] for result in results}, {"all_reduce", "barrier"})
        self.assert_nothing_is_left()

    def test_is_reported_at_once_while_the_others_continue(self):
        self.break_gloo('connection.sendall(b"missing by choice\\n")\nsys.exit("the worker has failed")')
        process = self.start("all_reduce", "--bytes", "1M", "--rounds", "1000", "--against", "gloo")
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        err = self.stderr_says(process, "the worker has failed")
        self.assertRegex(err, r"gloo: in all_reduce .*: rank \d ended with exit code 1; it wrote:")
        self.assertIsNone(process.poll())

    def test_is_named_once_if_it_is_peal(self):
        process = self.start("all_reduce", "--bytes", "1M", "--rounds", "5")
        process.stdout.readline()
        os.kill(self.worker("peal"), signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, r"(?m)^peal: in all_reduce .*: rank \d was killed by SIGKILL")

    def test_is_not_reported_as_a_wrong_baseline(self):
        code, _, err, results = self.bench("barrier")
        self.assertEqual(code, 0, err)
        baseline = self.folder / "baseline.jsonl"
        baseline.write_text("".join(json.dumps(result) + "\n" for result in results))
        process = self.start("barrier", "--rounds", "5", "--baseline", str(baseline))
        process.stdout.readline()
        os.kill(self.worker("peal"), signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("was killed by SIGKILL", err)
        self.assertNotIn("baseline", err)

    def test_leaves_the_tuning_file_unchanged(self):
        best = self.folder / "best"
        best.write_text("all_reduce:0-inf:ring\n")
        process = self.start("broadcast", "--bytes", "1M", "--rounds", "50", f"--tune={best}")
        process.stdout.readline()
        for algorithm in ("inline", "direct", "two_level", "ring", "recursive_doubling", "halving_doubling",
                          "binomial_tree", "pairwise"):
            os.kill(self.worker("peal", "peal-" + algorithm), signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, err)
        self.assertNotIn("PEAL_TUNE", out)
        self.assertEqual(best.read_text(), "all_reduce:0-inf:ring\n")

    def test_is_reported_as_missing_if_it_is_not_installed(self):
        self.environment["PEAL_BENCH_PYTHON"] = "/nowhere/python"
        code, _, err, _ = self.bench("barrier", "--against", "gloo")
        self.assertEqual(code, 0)
        self.assertIn("gloo: left out: there is no /nowhere/python", err)


class TheEnd(Bench):
    def test_by_control_c_leaves_nothing(self):
        process = self.start("all_reduce", "--bytes", "4M", "--rounds", "1000")
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        self.assert_nothing_is_left()

    def test_by_repeated_control_c_leaves_nothing(self):
        process = self.start("all_reduce", "--bytes", "4M", "--rounds", "1000")
        process.stdout.readline()
        for _ in range(5):
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        self.assert_nothing_is_left()

    def test_by_control_c_keeps_the_results(self):
        json_file = self.folder / "results.jsonl"
        json_file.write_text("former\n")
        process = self.start("all_reduce", "--bytes", "4:64M:2", "--seconds", "0.05", "--json", str(json_file))
        for _ in range(2):  # the header, and a result
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        results = [json.loads(line) for line in json_file.read_text().splitlines()]
        self.assertEqual({result["backend"] for result in results}, {"peal", "probe"})

    def test_by_control_c_leaves_files_unchanged_without_results(self):
        json_file, best = self.folder / "results.jsonl", self.folder / "best"
        for former in ("former\n", None):
            for path in (json_file, best):
                path.write_text(former) if former else path.unlink()
            process = self.start("all_reduce", "--bytes", "4M", "--rounds", "1000", "--json", str(json_file),
                                 f"--tune={best}")
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
            for path in (json_file, best):
                self.assertEqual(path.read_text() if path.exists() else None, former)

    def test_by_sigkill_leaves_no_process(self):
        process = self.start("all_reduce", "--bytes", "4M", "--rounds", "1000")
        process.stdout.readline()
        process.kill()
        process.communicate(timeout=PATIENCE)
        shutil.rmtree(self.folder / "tmp")
        (self.folder / "tmp").mkdir()
        self.soon(self.assert_nothing_is_left)


@unittest.skipUnless(shutil.which("mpicc.openmpi") and shutil.which("mpirun.openmpi"), "Open MPI is not installed")
class OpenMpisProgram(Bench):
    def measure(self):
        code, _, err, _ = self.bench("barrier", "--against", "openmpi")
        self.assertEqual(code, 0, err)

    def test_is_not_executed_if_others_could_have_replaced_it(self):
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        self.measure()
        cache = self.folder / "cache" / "peal"
        self.assertEqual(cache.stat().st_mode & 0o777, 0o700)
        program, = cache.iterdir()
        self.assertEqual(program.stat().st_mode & 0o777, 0o700)
        mark = self.folder / "mark"
        for program_mode, cache_mode in ((0o777, 0o700), (0o700, 0o777)):
            with self.subTest(program=oct(program_mode), cache=oct(cache_mode)):
                program.write_text(f"#!/bin/sh\ntouch {mark}\n")
                program.chmod(program_mode)
                cache.chmod(cache_mode)
                self.measure()
                self.assertFalse(mark.exists())


@unittest.skipUnless(shutil.which("mpicc.openmpi") and shutil.which("mpirun.openmpi"), "Open MPI is not installed")
@unittest.skipUnless(os.access("/dev/shm", os.W_OK | os.X_OK), "its files are not in /dev/shm")
class OpenMpisSharedMemory(Bench):
    def folders(self, process):
        """The names of a run's folders in /dev/shm."""
        return [name for name in os.listdir("/dev/shm") if name.startswith(f"peal-bench.{process.pid}.")]

    def test_of_a_killed_run_is_removed_by_the_next_one(self):
        killed = self.start("barrier", "--rounds", "1000", "--against", "openmpi")
        self.addCleanup(killed.kill)  # if the test fails before the kill below
        killed.stdout.readline()
        ours = self.folders(killed)
        self.assertEqual(len(ours), 1)
        self.assertTrue(os.listdir(f"/dev/shm/{ours[0]}"))
        killed.kill()
        killed.communicate(timeout=PATIENCE)
        # Any other run on this machine may have removed it by now.
        code, _, err, _ = self.bench("barrier")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.folders(killed), [])


class AFullDisk(Bench):
    def test_is_reported_and_the_run_continues(self):
        process = self.start("barrier", "all_reduce", "--bytes", "4", *QUICK, "--json", "/dev/full")
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(err.count("peal: cannot write /dev/full: No space left on device"), 1, err)
        self.assertRegex(out, r"(?s)barrier .*all_reduce ")

    def test_ends_the_run_if_the_table_does_not_fit(self):
        with open("/dev/full", "w") as full:
            process = subprocess.Popen([PROGRAM, "bench", "barrier", *QUICK], env=self.environment, text=True,
                                       stdout=full, stderr=subprocess.PIPE)
            _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertIn("peal: cannot write the table: No space left on device", err)
        self.assert_nothing_is_left()


class WhatCannotBeWritten(Bench):
    def test_is_an_error(self):
        for arguments in (["config"], ["--version"], ["bench", "--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=PATIENCE)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("peal: cannot write to standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
