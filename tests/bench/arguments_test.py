"""The errors of `peal bench` for wrong arguments and variables. Called by ctest with the program."""
import subprocess
import unittest

from program import Bench, PATIENCE, PROGRAM, QUICK


class WrongArguments(Bench):
    def test_cause_an_error_that_says_what_is_right(self):
        wrong = self.folder / "wrong"
        wrong.write_text("peal\n")
        for arguments, hint in (
                ([], "which operation? For example: peal bench all_reduce"),
                (["all_redcue"], 'there is no operation "all_redcue"; did you mean all_reduce?'),
                (["barrier", "--np", "1"], "it takes a number of ranks"),
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
                (["barrier", "--json", "x", "--tune=./x"], "--json and --tune are one file, x"),
                (["barrier", "--json", str(wrong), "--baseline", str(wrong)], "--json and --baseline are one file"),
                (["barrier", "--tolerance", "0.4"], "--tolerance needs --baseline"),
                (["barrier", "--baseline", str(wrong)], "line 1 of the baseline is not what `peal bench --json` "
                                                         "writes: parse error at line 1, column 1"),
                (["barrier", "--hosts-netns", "2", "--transport", "shm"],
                 "cannot be combined with --hosts-netns: hosts share no memory"),
                (["barrier", "--transport", "rdma"], "it takes auto, shm, tcp"),
                (["barrier", "--rate", "1gbit"], "--rate needs --hosts-netns"),
                (["barrier", "--hosts-netns", "2", "--np", "4"], "--np cannot be combined with --hosts-netns"),
                (["barrier", "--baseline", "/nowhere/x"], "the baseline /nowhere/x cannot be read: No such file"),
                (["barrier", "--baseline", "/"], "the baseline / cannot be read: Is a directory"),
                (["barrier,all_redcue"], 'there is no operation "all_redcue"; did you mean all_reduce?'),
                (["barrier,"], 'OP "barrier,": it takes names with a comma between them'),
                (["--tune", "--baseline", "x"], "--baseline cannot be combined with it"),
                *((["barrier", "--tolerance", part], f'--tolerance "{part}": it takes the part of an earlier ratio')
                  for part in ("-0.5", "0", "1.5", "nan", "half", "")),
                *((["barrier", "--seconds", seconds], "--seconds takes more than 0 and at most 3600, as in 0.1")
                  for seconds in ("0", "-1", "3601", "nan", "inf")),
                (["--json=", "barrier"], "--json= has no value: write the value after the ="),
                (["--tune=", "barrier"], "--tune= has no value: write the value after the ="),
                *((["barrier", option, ""], f"the value of {option} is empty")
                  for option in ("--json", "--baseline", "--against")),
                (["barrier", "--rounds", "0"], "--rounds takes 1 or more")):
            process = self.start(*arguments)
            out, err = process.communicate(timeout=PATIENCE)
            self.assertIn(hint, err, arguments)
            self.assertEqual(process.returncode, 2, arguments)
            self.assertEqual(out, "", arguments)

    def test_are_an_error_even_if_it_cannot_be_printed(self):
        with open("/dev/full", "w") as full:
            for arguments, code in ((["bench", "nonsense"], 2), (["nonsense"], 2), (["run", "-n", "2", "false"], 1),
                                    (["bench", "barrier", *QUICK], 0)):
                done = subprocess.run([PROGRAM, *arguments], env=self.environment, stdout=subprocess.DEVNULL,
                                      stderr=full, timeout=PATIENCE)
                self.assertEqual(done.returncode, code, arguments)

    def test_include_a_file_that_receives_the_table(self):
        log = self.folder / "log"
        with log.open("w") as output:
            done = subprocess.run([PROGRAM, "bench", "barrier", "--json", "/dev/stdout"], env=self.environment,
                                  stdout=output, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--json /dev/stdout is the file that the table goes to", done.stderr)

    def test_of_the_environment_are_reported_before_any_rank_is_started(self):
        for name, value, hint in (
                ("PEAL_TIMEOUT", "soon", 'PEAL_TIMEOUT="soon": it takes seconds'),
                ("PEAL_STAGE", "1x", 'PEAL_STAGE="1x": it takes bytes'),
                ("PEAL_ALGORITHM", "rign", 'PEAL_ALGORITHM: there is no algorithm "rign"'),
                ("PEAL_TUNE", "barrier:ring", 'PEAL_TUNE: row 1, "barrier:ring": has 2 fields between colons'),
                ("PEAL_CONGESTION", "pigeons", "PEAL_CONGESTION: cannot use the congestion control pigeons"),
                ("PEAL_MASTER_PORT", "door", 'PEAL_MASTER_PORT: "door" is not a port'),
                ("PEAL_INTERFACE", "none0", 'PEAL_INTERFACE="none0" leaves no address')):
            with self.subTest(name):
                self.environment[name] = value
                process = self.start("barrier", "--transport", "tcp")
                out, err = process.communicate(timeout=PATIENCE)
                self.assertEqual((process.returncode, out), (2, ""))
                self.assertTrue(err.startswith(f"peal: {hint}"), err)
                self.assertEqual(len(err.splitlines()), 1, err)
                del self.environment[name]


if __name__ == "__main__":
    unittest.main()
