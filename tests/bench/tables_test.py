"""bench/tables.py writes measurements into docs/performance.md: each number must be in the cell of
its case, and a case that was not measured must be an empty cell.

Called by ctest with the script.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)


def result(op, size, us, backend="peal", variant="registered", **others):
    return {"op": op, "backend": backend, "variant": variant, "dtype": "f32", "np": 2, "hosts": 1, "bytes": size,
            "median_us": us, "floor_fraction": 0.5, "times_faster": {}, **others}


class Tables(unittest.TestCase):
    def rows(self, kind, results, **more):
        """The cells of the table that the script makes of the results, without the line below the head.
        `more`: results of other runs by name; `kind` contains these names too."""
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"above\n<!-- table {kind} data -->\n<!-- end -->\nbelow\n")
            page.with_suffix("").mkdir()
            for name, of in {"data": results, **more}.items():
                (page.with_suffix("") / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in of))
            subprocess.run([sys.executable, "-B", SCRIPT, page], check=True)
            above, _, *lines, _, below = page.read_text().splitlines()
        self.assertEqual((above, below), ("above", "below"))
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return rows[:1] + rows[2:]

    def test_show_a_rounded_size_in_the_column_of_the_requested_one(self):
        fast = {"times_faster": {"openmpi": 2}}
        rows = self.rows("faster openmpi", [
            result("broadcast", 4, 1, **fast), result("broadcast", 16, 1, **fast), result("gather", 8, 1, **fast)])
        self.assertEqual(rows[0], ["", "", "4 or 8 B", "16 B"])
        self.assertIn(["broadcast", "registered", "2", "2"], rows)
        self.assertIn(["gather", "registered", "2", ""], rows)

    def test_do_not_shift_measured_values_into_a_gap(self):
        fast = {"times_faster": {"openmpi": 3}}
        rows = self.rows("faster openmpi", [
            result("reduce", 4, 1, **fast), result("reduce", 4096, 1, **fast), result("broadcast", 4096, 1, **fast)])
        self.assertIn(["broadcast", "registered", "", "3"], rows)

    def test_leave_cells_empty_for_missing_peers_and_memory(self):
        rows = self.rows("times", [
            result("all_reduce", 4, 1, times_faster={"openmpi": 2}), result("all_reduce", 4, 2, "openmpi", "default"),
            result("all_reduce", 16, 1, variant="foreign")])
        self.assertEqual(rows[1:], [["2", "4 B", "1 us", "", "", "0.50", "2 us", "2", ""],
                                    ["2", "16 B", "", "1 us", "", "", "", "", ""]])

    def test_compute_shares_in_each_round_in_any_order_of_backends(self):
        columns = ["alone", "reducer", "lockstep", "gloo", "peal"]
        steps = [dict(zip(columns, us)) for us in ((100, 110, 120, 200, 140), (200, 220, 250, 400, 250),
                                                   (10, 12, 14, 30, 16))]
        rows = self.rows("python ddp", [
            {"part": "ddp", "backend": column, "what": "step", "us": step[column]}
            for first, step in enumerate(steps) for column in columns[first:] + columns[:first]])
        self.assertEqual(rows[1], [
            "step", "100 us", "110 us", "120 us", "200 us", "140 us", "0.30 (0.25 to 0.40)",
            "0.10 (0.10 to 0.10)", "0.10 (0.10 to 0.15)", "0.10 (0.00 to 0.20)"])

    def test_compare_runs_by_the_bare_stream_of_each(self):
        rows = self.rows("sealing sealing_plain", [result("all_reduce", 64, 9, floor_fraction=0.2)],
                         sealing_plain=[result("all_reduce", 64, 3, floor_fraction=0.8)])
        self.assertEqual(rows, [["bytes", "plain", "data / plain"], ["64 B", "3 us", "4.00"]])

    def test_show_the_time_of_an_operation_as_a_share_of_an_all_reduce(self):
        rows = self.rows("in_place", [result("all_gather", 64, 3), result("all_reduce", 64, 5)])
        self.assertIn(["all_gather", "registered", "64 B", "3 us", "0.60"], rows)
        self.assertIn(["all_gather", "foreign", "64 B", "", ""], rows)

    def test_show_hosts_with_foreign_memory_even_if_it_is_slower(self):
        between = {"np": 4, "hosts": 2, "host_tx_bytes": 80}
        rows = self.rows("hosts", [
            result("all_reduce", 64, 3, **between), result("all_reduce", 64, 5, variant="foreign", **between),
            result("all_reduce", 64, 4, "stream", "two-way", **between),
            result("all_reduce", 64, 2, "stream", "two-threads", **between)])
        self.assertEqual(rows[1], ["2 x 2", "64 B", "5 us", "2 us", "0.50", "1.250"])


if __name__ == "__main__":
    unittest.main()
