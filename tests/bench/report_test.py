"""What `peal bench` reports: its table, JSON lines, picture, comparison and tuning. Called by ctest with the
program.
"""
import json
import shutil
import signal
import unittest

from program import Bench, PATIENCE

FIELDS = {"op", "backend", "transport", "dtype", "np", "hosts", "bytes", "registered", "median_us", "p99_us",
          "min_us", "max_us", "algbw_gbps", "busbw_gbps", "floor_fraction", "rounds", "samples"}


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

    def test_names_the_algorithm_that_peal_used_and_not_the_requested_one(self):
        for asked, taken in (("ring", "ring"), ("two_level", "direct")):
            self.environment["PEAL_ALGORITHM"] = asked
            code, out, err, results = self.bench("all_reduce", "--bytes", "1M")
            self.assertEqual(code, 0, err)
            self.assertIn(f" {taken} ", out)
            self.assertNotIn(" two_level ", out)
            for result in results:
                self.assertEqual(result["algorithm"], taken if result["backend"] == "peal" else None)

    def test_has_the_operations_in_every_form_of_list(self):
        code, _, err, results = self.bench("barrier,broadcast", "reduce", "--bytes", "4", "--memory", "foreign")
        self.assertEqual(code, 0, err)
        self.assertEqual({result["op"] for result in results}, {"barrier", "broadcast", "reduce"})

    def test_has_every_operation(self):
        code, _, err, results = self.bench("all", "--bytes", "1000", "--dtype", "bf16", "--np", "3")
        self.assertEqual(code, 0, err)
        self.assertEqual(len({result["op"] for result in results}), 10)

    def test_accepts_the_rank_options_of_other_launchers(self):
        for ways in (["-np", "3"], ["-n=3"], ["--nproc-per-node", "3"], ["--nproc_per_node=3"]):
            with self.subTest(ways):
                code, _, err, results = self.bench("barrier", "--memory", "foreign", *ways)
                self.assertEqual(code, 0, err)
                self.assertEqual({result["np"] for result in results}, {3})

    def test_accepts_torchs_names_of_types(self):
        code, _, err, results = self.bench("all_reduce", "--bytes", "8", "--memory", "foreign", "--dtype",
                                           "float32,bfloat16,int64,uint8,f32")
        self.assertEqual(code, 0, err)
        self.assertEqual([result["dtype"] for result in results if result["backend"] == "peal"],
                         ["f32", "bf16", "i64", "u8"])

    def test_names_a_congestion_control_only_with_tcp(self):
        _, _, err, _ = self.bench("barrier")
        self.assertIn("  peal: shared memory\n", err)
        _, _, err, _ = self.bench("barrier", "--transport", "tcp")
        self.assertIn("  peal: congestion control ", err)

    def test_begins_with_a_warning_about_unknown_variables(self):
        self.environment["PEAL_TUN"] = "x"
        code, _, err, _ = self.bench("barrier")
        self.assertEqual(code, 0, err)
        self.assertIn("peal: warning: peal does not read PEAL_TUN (did you mean PEAL_TUNE?)", err)

    def test_is_compared_with_an_earlier_one(self):
        former = self.folder / "former.jsonl"
        _, _, _, results = self.bench("barrier")
        real = [result["floor_fraction"] or 1 for result in results]
        for tolerance, expected in (([], 1), (["--tolerance", "1e-12"], 0)):
            factor = 1e6  # no machine becomes that much faster, or slower, from one run to the next
            for result, fraction in zip(results, real):
                result["floor_fraction"] = fraction * factor
            former.write_text("".join(json.dumps(result) + "\n" for result in results))
            code, _, err, _ = self.bench("barrier", "--baseline", str(former), *tolerance)
            self.assertEqual(code, expected, err)
            if expected == 1:
                self.assertRegex(err, r"barrier u8 np=2 hosts=1 0 B registered shm +floor +was +\d+")

    def test_is_not_started_if_the_earlier_one_has_no_common_case(self):
        former = self.folder / "former.jsonl"
        _, _, _, results = self.bench("barrier")
        former.write_text("".join(json.dumps(result) + "\n" for result in results))
        code, out, err, _ = self.bench("barrier", "--np", "3", "--baseline", str(former))
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, 'peal: the baseline and this run have no case in common: the baseline has "barrier u8 '
                              'np=2 hosts=1 0 B registered shm" and 1 more, this run has "barrier u8 np=3 hosts=1 0 B registered shm" '
                              'and 1 more\n')

    def test_is_not_started_if_the_earlier_one_was_measured_differently(self):
        former = self.folder / "former.jsonl"
        _, _, _, results = self.bench("all_reduce", "--bytes", "64", "--memory", "foreign")
        former.write_text("".join(json.dumps(result) + "\n" for result in results))
        run = ["all_reduce", "--bytes", "64", "--memory", "foreign", "--baseline", str(former)]
        code, out, err, _ = self.bench(*run, "--untouched")
        self.assertEqual((code, out), (2, ""))
        self.assertIn(', this run has "all_reduce f32 np=2 hosts=1 64 B in place foreign shm, untouched"', err)
        for name, value in (("PEAL_ALGORITHM", "ring"), ("PEAL_TUNE", "all_reduce:0-4k:ring")):
            self.environment[name] = value
            code, out, err, _ = self.bench(*run)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f'foreign shm, {name}={value}"', err)
            code, _, err, results = self.bench(*run[:-2])
            self.assertEqual(code, 0, err)
            self.assertEqual({result[name.lower()] for result in results}, {value})
            del self.environment[name]

    def test_names_the_best_algorithms(self):
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

    def test_shows_progress_and_partial_results_when_it_is_interrupted(self):
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
        self.assertRegex(out, r'\n# partial: interrupted in case 2 of 8 with 2 ranks\nPEAL_TUNE=".*"\n$')
        self.assertEqual(best.read_text(), "all_reduce:0-inf:ring\n")
        self.assert_nothing_is_left()


class WhatTheEnvironmentSays(Bench):
    def test_of_the_transport_holds_unless_an_option_overrides_it(self):
        self.environment["PEAL_TRANSPORT"] = "tcp"
        for arguments, transport in (([], "tcp"), (["--transport", "shm"], "shm")):
            code, _, err, results = self.bench("all_reduce", "--bytes", "4", *arguments)
            self.assertEqual(code, 0, err)
            self.assertEqual({result["transport"] for result in results if result["backend"] == "peal"}, {transport})


if __name__ == "__main__":
    unittest.main()
