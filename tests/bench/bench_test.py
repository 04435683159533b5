"""`peal bench` as its user meets it: what it reports, what it says of backends that fail, and that it
leaves nothing behind.

Called by ctest with the program. A peer that fails is a script in place of the Python that would run gloo.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
PATIENCE = 60  # seconds
QUICK = ["--rounds", "1", "--seconds", "0.02"]
FIELDS = {"op", "backend", "transport", "dtype", "np", "hosts", "bytes", "registered", "median_us", "p99_us",
          "min_us", "max_us", "algbw_gbps", "busbw_gbps", "floor_fraction", "rounds", "samples"}

# A worker that greets as gloo does, and answers its first command with `ANSWER`, or ends.
PEER = """#!{python}
import socket, sys, time
if sys.argv[1] == "-c": sys.exit(0)  # "is there torch?"
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[3])
connection.sendall(f"hello gloo {{sys.argv[6]}} a broken one\\n".encode())
connection.makefile("r").readline()
{answer}
time.sleep(60)
"""


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tmp").mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.folder / "tmp")}

    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, "bench", *arguments], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start_quick(self, *arguments):
        return self.start(*arguments, *QUICK, "--json", str(self.folder / "results.jsonl"))

    def end_of(self, quick):
        """(exit code, stdout, stderr, results)"""
        out, err = quick.communicate(timeout=PATIENCE)
        path = self.folder / "results.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return quick.returncode, out, err, [json.loads(line) for line in lines]

    def bench(self, *arguments):
        """(exit code, stdout, stderr, results)"""
        return self.end_of(self.start_quick(*arguments))

    def break_gloo(self, answer):
        """From now on gloo's workers do this instead of answering."""
        script = self.folder / "python"
        script.write_text(PEER.format(python=sys.executable, answer=answer))
        script.chmod(0o700)
        self.environment["PEAL_BENCH_PYTHON"] = str(script)

    def worker(self, backend, name=None):
        """A process of the backend, which may go by another name."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_text().split("\0")
            except OSError:  # it has just ended
                continue
            is_ours = any(word.startswith(str(self.folder)) for word in words)
            if is_ours and words[1:4] == ["bench-worker", backend, name or backend]:
                return int(path.parent.name)
        self.fail(f"there is no worker of {name or backend}")

    def assert_nothing_is_left(self):
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        mark = f"TMPDIR={self.folder}".encode()
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                self.assertNotIn(mark, path.read_bytes(), path)
            except OSError:  # it has just ended, or is somebody else's
                pass

    def soon(self, check):
        """The check passes, if not at once."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return check()
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


class TheReport(Bench):
    def test_has_every_case_of_every_backend(self):
        code, out, err, results = self.bench("all_reduce", "--np", "2", "--bytes", "4,64K", "--against", "mpi")
        self.assertEqual(code, 0, err)
        for result in results:
            self.assertLessEqual(FIELDS, set(result))
            self.assertGreater(result["median_us"], 0)
            self.assertGreaterEqual(result["p99_us"], result["median_us"])
            self.assertLessEqual(result["min_us"], result["max_us"])
        ways = {(result["backend"], result["registered"], result["bytes"]) for result in results}
        for size in (4, 65536):
            self.assertIn(("peal", True, size), ways)
            self.assertIn(("peal", False, size), ways)
            self.assertIn(("probe", None, size), ways)
            if shutil.which("mpicc.openmpi") and shutil.which("mpirun.openmpi"):
                self.assertIn(("openmpi", None, size), ways)
        self.assertEqual(len(out.splitlines()), 1 + len(results))
        self.assert_nothing_is_left()

    def test_says_by_which_algorithm_peal_did_it_and_not_which_was_asked_for(self):
        for asked, taken in (("ring", "ring"), ("two_level", "direct")):
            self.environment["PEAL_ALGORITHM"] = asked
            code, out, err, results = self.bench("all_reduce", "--bytes", "1M")
            self.assertEqual(code, 0, err)
            self.assertIn(f" {taken} ", out)
            self.assertNotIn(" two_level ", out)
            for result in results:
                self.assertEqual(result["algorithm"], taken if result["backend"] == "peal" else None)

    def test_has_the_operations_however_they_are_listed(self):
        code, _, err, results = self.bench("barrier,broadcast", "reduce", "--bytes", "4", "--memory", "foreign")
        self.assertEqual(code, 0, err)
        self.assertEqual({result["op"] for result in results}, {"barrier", "broadcast", "reduce"})

    def test_has_every_operation(self):
        code, _, err, results = self.bench("all", "--bytes", "1000", "--dtype", "bf16", "--np", "3")
        self.assertEqual(code, 0, err)
        self.assertEqual(len({result["op"] for result in results}), 10)

    def test_is_of_as_many_ranks_as_any_launcher_would_say(self):
        for ways in (["-np", "3"], ["-n=3"], ["--nproc-per-node", "3"], ["--nproc_per_node=3"]):
            with self.subTest(ways):
                code, _, err, results = self.bench("barrier", "--memory", "foreign", *ways)
                self.assertEqual(code, 0, err)
                self.assertEqual({result["np"] for result in results}, {3})

    def test_is_of_types_as_torch_calls_them_too(self):
        code, _, err, results = self.bench("all_reduce", "--bytes", "8", "--memory", "foreign", "--dtype",
                                           "float32,bfloat16,int64,uint8,f32")
        self.assertEqual(code, 0, err)
        self.assertEqual([result["dtype"] for result in results if result["backend"] == "peal"],
                         ["f32", "bf16", "i64", "u8"])

    def test_names_a_congestion_control_where_there_is_tcp_only(self):
        _, _, err, _ = self.bench("barrier")
        self.assertIn("  peal: shared memory\n", err)
        _, _, err, _ = self.bench("barrier", "--transport", "tcp")
        self.assertIn("  peal: congestion control ", err)

    def test_begins_with_a_warning_of_variables_that_nothing_reads(self):
        self.environment["PEAL_TUN"] = "x"
        code, _, err, _ = self.bench("barrier")
        self.assertEqual(code, 0, err)
        self.assertIn("peal: warning: nothing reads PEAL_TUN (did you mean PEAL_TUNE?)", err)

    def test_is_compared_with_a_former_one(self):
        former = self.folder / "former.jsonl"
        _, _, _, results = self.bench("barrier")
        for result in results:
            result["floor_fraction"] = 1000  # nobody can be as good again
        former.write_text("".join(json.dumps(result) + "\n" for result in results))
        code, _, err, _ = self.bench("barrier", "--baseline", str(former))
        self.assertEqual(code, 1)
        self.assertRegex(err, r"barrier u8 np=2 hosts=1 0 B registered shm +floor +was +1000.00")
        code, _, err, _ = self.bench("barrier", "--baseline", str(former), "--tolerance", "0.00001")
        self.assertEqual(code, 0, err)

    def test_is_not_begun_where_the_former_one_has_none_of_its_cases(self):
        former = self.folder / "former.jsonl"
        _, _, _, results = self.bench("barrier")
        former.write_text("".join(json.dumps(result) + "\n" for result in results))
        code, out, err, _ = self.bench("barrier", "--np", "3", "--baseline", str(former))
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, 'peal: the baseline has none of the cases of this run: it has "barrier u8 np=2 hosts=1 '
                              '0 B registered shm" and 1 more, this run "barrier u8 np=3 hosts=1 0 B registered shm" '
                              'and 1 more\n')

    def test_is_not_begun_where_the_former_one_was_measured_in_another_way(self):
        former = self.folder / "former.jsonl"
        _, _, _, results = self.bench("all_reduce", "--bytes", "64", "--memory", "foreign")
        former.write_text("".join(json.dumps(result) + "\n" for result in results))
        run = ["all_reduce", "--bytes", "64", "--memory", "foreign", "--baseline", str(former)]
        code, out, err, _ = self.bench(*run, "--untouched")
        self.assertEqual((code, out), (2, ""))
        self.assertIn(', this run "all_reduce f32 np=2 hosts=1 64 B in place foreign shm, untouched"', err)
        for name, value in (("PEAL_ALGORITHM", "ring"), ("PEAL_TUNE", "all_reduce:0-4k:ring")):
            self.environment[name] = value
            code, out, err, _ = self.bench(*run)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f'foreign shm, {name}={value}"', err)
            code, _, err, results = self.bench(*run[:-2])
            self.assertEqual(code, 0, err)
            self.assertEqual({result[name.lower()] for result in results}, {value})
            del self.environment[name]

    def test_tells_which_algorithms_are_best(self):
        best = self.folder / "best"
        code, out, err, results = self.bench("all_reduce", "--bytes", "4,1M", "--memory", "foreign", f"--tune={best}")
        self.assertEqual(code, 0, err)
        comment, *rows = best.read_text().splitlines()
        self.assertTrue(comment.startswith("# by peal bench --tune"), comment)
        rows = [row for row in rows if row]
        for row in rows:
            self.assertRegex(row, r"^all_reduce(@host)?:(0|2k|512k)-(4|2k|1m):\w+$")
        self.assertIn(f'PEAL_TUNE="{";".join(rows)}"', out)
        for result in results:
            self.assertEqual(result["backend"], "peal-" + result["algorithm"])
        self.environment["PEAL_TUNE"] = f"@{best}"
        code, _, err, results = self.bench("all_reduce", "--bytes", "4,1M")
        self.assertEqual(code, 0, err)
        best.write_text("all_reduce:0-inf:ringg")
        code, out, err, _ = self.bench("all_reduce", "--bytes", "4")
        self.assertEqual((code, out), (2, ""))
        self.assertIn(f'peal: PEAL_TUNE=@{best}: row 1, "all_reduce:0-inf:ringg": there is no algorithm "ringg"', err)

    def test_says_how_far_it_is_and_what_was_found_when_it_is_broken_off(self):
        best = self.folder / "best"
        best.write_text("all_reduce:0-inf:ring\n")
        process = self.start("all_reduce", "--bytes", "4:64K", "--memory", "foreign", "--rounds", "40",
                             "--seconds", "0.01", f"--tune={best}")
        lines = iter(process.stderr.readline, "")
        first = next(line for line in lines if line.startswith("case "))
        self.assertRegex(first, r"^case 1 of 8, all_reduce of 4 B; about \d+ (s|min) left$")
        self.assertRegex(next(line for line in lines if line.startswith("case ")), r"^case 2 of 8, ")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(out, r'\n# partial: broken off in case 2 of 8 with 2 ranks\nPEAL_TUNE=".*"\n$')
        self.assertEqual(best.read_text(), "all_reduce:0-inf:ring\n")
        self.assert_nothing_is_left()

    def test_is_drawn(self):
        page = self.folder / "page.html"
        code, _, err, _ = self.bench("all_reduce", "--bytes", "4,64", "--plot", str(page))
        self.assertEqual(code, 0, err)
        self.assertIn("all_reduce of f32 on 2 ranks", page.read_text())


class ABackendThatFails(Bench):
    def test_is_named_when_its_result_is_wrong(self):
        self.break_gloo('connection.sendall(b"wrong index 3: got 1, expected 2\\n")')
        code, _, err, results = self.bench("all_reduce", "--bytes", "16", "--against", "gloo")
        self.assertEqual(code, 1)
        self.assertIn("gloo: wrong result of all_reduce of 16 B of f32 on 2 ranks", err)
        self.assertIn("rank 0: index 3: got 1, expected 2", err)
        self.assertEqual({result["backend"] for result in results}, {"peal", "probe"})

    def test_is_left_out_when_a_worker_dies_and_the_others_go_on(self):
        self.break_gloo('sys.exit("there was no more to say")')
        code, _, err, results = self.bench("all_reduce", "barrier", "--bytes", "16", "--against", "gloo")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"gloo: in all_reduce .*: rank \d ended with exit code 1; it wrote:")
        self.assertIn("there was no more to say", err)
        self.assertEqual({result["op"] for result in results}, {"all_reduce", "barrier"})
        self.assert_nothing_is_left()

    def test_has_its_name_once_where_it_is_peal(self):
        process = self.start("all_reduce", "--bytes", "1M", "--rounds", "5")
        process.stdout.readline()
        os.kill(self.worker("peal"), signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, r"(?m)^peal: in all_reduce .*: rank \d was killed by signal 9")

    def test_is_not_taken_for_a_baseline_that_does_not_fit(self):
        code, _, err, results = self.bench("barrier")
        self.assertEqual(code, 0, err)
        baseline = self.folder / "baseline.jsonl"
        baseline.write_text("".join(json.dumps(result) + "\n" for result in results))
        process = self.start("barrier", "--rounds", "5", "--baseline", str(baseline))
        process.stdout.readline()
        os.kill(self.worker("peal"), signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("was killed by signal 9", err)
        self.assertNotIn("baseline", err)

    def test_leaves_what_it_was_to_tune_as_it_was(self):
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

    def test_is_said_to_be_missing_where_it_is_not_installed(self):
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

    def test_by_control_c_again_and_again_is_the_same(self):
        process = self.start("all_reduce", "--bytes", "4M", "--rounds", "1000")
        process.stdout.readline()
        for _ in range(5):
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        self.assert_nothing_is_left()

    def test_by_control_c_keeps_what_was_measured(self):
        json_file, page = self.folder / "results.jsonl", self.folder / "page.svg"
        for path in (json_file, page):
            path.write_text("former\n")
        process = self.start("all_reduce", "--bytes", "4:64M:2", "--seconds", "0.05", "--json", str(json_file),
                             "--plot", str(page))
        for _ in range(2):  # the header, and a result
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 130)
        results = [json.loads(line) for line in json_file.read_text().splitlines()]
        self.assertEqual({result["backend"] for result in results}, {"peal", "probe"})
        self.assertIn("all_reduce of f32 on 2 ranks", page.read_text())

    def test_by_control_c_leaves_files_as_they_were_where_nothing_was_measured(self):
        json_file, page, best = self.folder / "results.jsonl", self.folder / "page.svg", self.folder / "best"
        for former in ("former\n", None):
            for path in (json_file, page, best):
                path.write_text(former) if former else path.unlink()
            process = self.start("all_reduce", "--bytes", "4M", "--rounds", "1000", "--json", str(json_file),
                                 "--plot", str(page), f"--tune={best}")
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
            for path in (json_file, page, best):
                self.assertEqual(path.read_text() if path.exists() else None, former)

    def test_by_being_killed_leaves_no_process(self):
        process = self.start("all_reduce", "--bytes", "4M", "--rounds", "1000")
        process.stdout.readline()
        process.kill()
        process.communicate(timeout=PATIENCE)
        shutil.rmtree(self.folder / "tmp")
        (self.folder / "tmp").mkdir()
        self.soon(self.assert_nothing_is_left)


@unittest.skipUnless(shutil.which("mpicc.openmpi") and shutil.which("mpirun.openmpi"), "there is no OpenMPI")
@unittest.skipUnless(os.access("/dev/shm", os.W_OK | os.X_OK), "its files are not in /dev/shm")
class OpenMpisSharedMemory(Bench):
    def folders(self, process):
        """What a run has in /dev/shm."""
        return [name for name in os.listdir("/dev/shm") if name.startswith(f"peal-bench.{process.pid}.")]

    def test_is_removed_by_the_next_run_where_one_was_killed(self):
        killed = self.start("barrier", "--rounds", "1000", "--against", "openmpi")
        self.addCleanup(killed.kill)  # where it gets no further
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
    def test_is_told_and_the_run_goes_on(self):
        process = self.start("barrier", "all_reduce", "--bytes", "4", *QUICK, "--json", "/dev/full")
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(err.count("peal: cannot write /dev/full: No space left on device"), 1, err)
        self.assertRegex(out, r"(?s)barrier .*all_reduce ")

    def test_ends_the_run_where_the_table_does_not_fit(self):
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


class WhatTheEnvironmentSays(Bench):
    def test_of_the_transport_holds_unless_an_option_says_another(self):
        self.environment["PEAL_TRANSPORT"] = "tcp"
        for arguments, transport in (([], "tcp"), (["--transport", "shm"], "shm")):
            code, _, err, results = self.bench("all_reduce", "--bytes", "4", *arguments)
            self.assertEqual(code, 0, err)
            self.assertEqual({result["transport"] for result in results if result["backend"] == "peal"}, {transport})


class WrongArguments(Bench):
    def test_say_what_would_be_right(self):
        for arguments, hint in (
                ([], "which operation? For example: peal bench all_reduce"),
                (["all_redcue"], 'there is no operation "all_redcue"; did you mean all_reduce?'),
                (["barrier", "--np", "1"], "it takes how many ranks"),
                (["barrier", "--bytes", "4X"], "as in 4, 64K, 1M or 2G"),
                (["barrier", "--dtype", "f31"], 'no type to measure "f31"'),
                (["barrier", "--dtype", "Float32"], 'no type to measure "Float32"; did you mean float32?'),
                (["barrier", "--dtype", "quaternion"], 'no type to measure "quaternion", only u8, i8, i16,'),
                *((["barrier", "--dtype", name], f'--dtype "{name}" is not measured, only u8, i8, i16,')
                  for name in ("bool", "c64", "complex128")),
                (["barrier", "--against", "glo"], 'no peer "glo"; did you mean gloo?'),
                (["barrier", "--against", "MPI"], 'no peer "MPI"; did you mean mpi?'),
                (["all_reduce", "--np", "2,64", "--bytes", "4,1024G"], "all_reduce of 1099511627776 B of f32 on 2 ranks "
                 "takes 6144.0 GiB of memory for the buffers of all ranks (peal registered 2048.0 GiB, "
                 "peal foreign 2048.0 GiB, probe 2048.0 GiB), and this machine"),
                (["all_reduce", "--hosts-netns", "2", "--bytes", "1024G"], "stream 4096.0 GiB"),
                (["barrier", "--json", "x.svg", "--plot", "./x.svg"], "--json and --plot are one file, x.svg"),
                (["barrier", "--json", __file__, "--baseline", __file__], "--json and --baseline are one file"),
                (["barrier", "--tolerance", "0.4"], "--tolerance is about --baseline, which is not there"),
                (["barrier", "--baseline", __file__], "line 1 of the baseline is not what `peal bench --json` "
                                                      "writes: parse error at line 1, column 1"),
                (["barrier", "--hosts-netns", "2", "--transport", "shm"],
                 "--transport shm does not go with --hosts-netns"),
                (["barrier", "--transport", "rdma"], "it takes auto, shm, tcp"),
                (["barrier", "--rate", "1gbit"], "--rate is about the hosts of --hosts-netns"),
                (["barrier", "--hosts-netns", "2", "--np", "4"], "--np does not go with --hosts-netns"),
                (["barrier", "--baseline", "/nowhere/x"], "the baseline /nowhere/x cannot be read: No such file"),
                (["barrier", "--baseline", "/"], "the baseline / cannot be read: Is a directory"),
                (["barrier", "--plot", "x.png"], "--plot x.png: only .svg and .html can be drawn"),
                (["barrier,all_redcue"], 'there is no operation "all_redcue"; did you mean all_reduce?'),
                (["barrier,"], 'OP "barrier,": it takes names with a comma between them'),
                (["--tune", "--baseline", "x"], "--baseline does not go with it"),
                *((["barrier", "--tolerance", part], f'--tolerance "{part}": it takes how much of a former ratio')
                  for part in ("-0.5", "0", "1.5", "nan", "half", "")),
                *((["barrier", "--seconds", seconds], "--seconds takes more than 0 and at most 3600, as in 0.1")
                  for seconds in ("0", "-1", "3601", "nan", "inf")),
                (["--json=", "--plot=p.svg", "barrier"], "there is no value behind --json="),
                (["--tune=", "barrier"], "there is no value behind --tune="),
                *((["barrier", option, ""], f"the value of {option} is empty")
                  for option in ("--json", "--plot", "--baseline", "--against")),
                (["barrier", "--rounds", "0"], "--rounds takes 1 or more")):
            process = self.start(*arguments)
            out, err = process.communicate(timeout=PATIENCE)
            self.assertIn(hint, err, arguments)
            self.assertEqual(process.returncode, 2, arguments)
            self.assertEqual(out, "", arguments)

    def test_are_an_error_also_where_nobody_can_be_told(self):
        with open("/dev/full", "w") as full:
            for arguments, code in ((["bench", "nonsense"], 2), (["nonsense"], 2), (["run", "-n", "2", "false"], 1),
                                    (["bench", "barrier", *QUICK], 0)):
                done = subprocess.run([PROGRAM, *arguments], env=self.environment, stdout=subprocess.DEVNULL,
                                      stderr=full, timeout=PATIENCE)
                self.assertEqual(done.returncode, code, arguments)

    def test_are_a_file_that_the_table_goes_to(self):
        log = self.folder / "log"
        with log.open("w") as output:
            done = subprocess.run([PROGRAM, "bench", "barrier", "--json", "/dev/stdout"], env=self.environment,
                                  stdout=output, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--json /dev/stdout is the file that the table goes to", done.stderr)

    def test_of_the_environment_are_told_before_any_rank_is_started(self):
        for name, value, hint in (
                ("PEAL_TIMEOUT", "soon", 'PEAL_TIMEOUT="soon": it takes seconds'),
                ("PEAL_STAGE", "1x", 'PEAL_STAGE="1x": it takes bytes'),
                ("PEAL_ALGORITHM", "rign", 'PEAL_ALGORITHM: there is no algorithm "rign"'),
                ("PEAL_TUNE", "barrier:ring", 'PEAL_TUNE: row 1, "barrier:ring": has 2 fields between colons'),
                ("PEAL_CONGESTION", "pigeons", "PEAL_CONGESTION: cannot use the congestion control pigeons"),
                ("PEAL_MASTER_PORT", "door", 'PEAL_MASTER_PORT: "door" is no port'),
                ("PEAL_INTERFACE", "none0", 'PEAL_INTERFACE="none0" leaves no address')):
            with self.subTest(name):
                self.environment[name] = value
                process = self.start("barrier", "--transport", "tcp")
                out, err = process.communicate(timeout=PATIENCE)
                self.assertEqual((process.returncode, out), (2, ""))
                self.assertTrue(err.startswith(f"peal: {hint}"), err)
                self.assertEqual(len(err.splitlines()), 1, err)
                del self.environment[name]


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc"),
                     "network namespaces take root and iproute2")
class HostsOnThisMachine(Bench):
    def hosts(self, process):
        """What a run has laid: hosts, and the bridge between them with its ports."""
        ours = re.compile(rf"(peal-bench-{process.pid}-|pealb{process.pid}$|pealv{process.pid}\.)")
        folders = filter(os.path.isdir, ("/run/netns", "/sys/class/net"))
        return {name for folder in folders for name in os.listdir(folder) if ours.match(name)}

    def test_are_measured_and_removed(self):
        process = self.start_quick("all_reduce", "all_to_all", "--bytes", "16,256K", "--rate", "10gbit",
                                   "--hosts-netns", "2", "--memory", "registered", "--congestion", "reno")
        code, _, err, results = self.end_of(process)
        if re.search("Operation not permitted|not supported", err):
            self.skipTest("no network namespaces can be made here")
        self.assertEqual(code, 0, err)
        self.assertIn("peal: congestion control reno", err)
        ways = {(result["backend"], result["variant"], result["bytes"]) for result in results}
        self.assertEqual(ways, {("peal", "registered", 16), ("stream", "round-trip", 16),
                                ("peal", "registered", 256 << 10), ("stream", "two-way", 256 << 10)})
        for result in results:
            self.assertEqual(result["transport"], "tcp")
            least = result["bytes"] / (1 if result["op"] == "all_reduce" else 2)
            self.assertGreater(result["host_tx_bytes"], least)
            self.assertGreater(result["host_qdisc_bytes"], least)
        self.assertEqual(self.hosts(process), set())
        self.assert_nothing_is_left()

    def test_of_a_run_that_was_killed_are_removed_by_the_next(self):
        killed = self.start("barrier", "--hosts-netns", "2", "--rounds", "1000")
        self.addCleanup(killed.kill)  # where it gets no further
        if not killed.stdout.readline():
            self.skipTest("no network namespaces can be made here")
        pid = killed.pid
        self.assertEqual(self.hosts(killed), {f"peal-bench-{pid}-0", f"peal-bench-{pid}-1", f"pealb{pid}",
                                              f"pealv{pid}.0", f"pealv{pid}.1"})
        killed.kill()
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # a zombie: its exit code is still to be had
        # Any other run on this machine may have removed them by now.
        code, _, err, _ = self.bench("barrier")
        self.assertEqual(code, 0, err)
        # Ports go with their hosts, and these with the last process there.
        self.soon(lambda: self.assertEqual(self.hosts(killed), set()))
        killed.communicate(timeout=PATIENCE)

    def test_take_no_rate_that_is_none(self):
        for option in ("--rate", "--congestion"):
            process = self.start_quick("barrier", "--hosts-netns", "2", option, "snail")
            code, _, err, _ = self.end_of(process)
            self.assertIn(code, (1, 2))
            if code == 2:  # it could make namespaces
                self.assertIn(f'{option} "snail"', err)
            self.assertEqual(self.hosts(process), set())


if __name__ == "__main__":
    unittest.main()
