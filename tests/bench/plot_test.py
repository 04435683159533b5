"""bench/plot.py draws the output of `peal bench --json`, of bench/python/backends.py and of the gpt example."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

PLOT = sys.argv.pop(1)


def result(backend, variant, size, us):
    return {"op": "all_reduce", "dtype": "f32", "np": 2, "bytes": size, "backend": backend, "variant": variant,
            "median_us": us, "min_us": us * 0.9, "max_us": us * 1.2, "busbw_gbps": size / us / 1000}


def drawn(lines):
    return drawn_text("".join(json.dumps(line) + "\n" for line in lines))


def drawn_text(results):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "results")
        path.write_text(results)
        page = pathlib.Path(folder, "page.svg")
        subprocess.run([sys.executable, PLOT, path, page], check=True)
        return page.read_text()


def texts(page):
    return [element.text for element in ElementTree.fromstring(page).iter("{http://www.w3.org/2000/svg}text")]


class Plots(unittest.TestCase):
    def test_results_are_curves_with_a_line_and_a_band_for_each_backend(self):
        page = drawn([result("peal", "registered", size, size / 100) for size in (1024, 4096, 65536)] +
                     [result("gloo", "default", size, size / 10) for size in (1024, 65536)])
        self.assertEqual(page.count("<polyline"), 4)  # time and bandwidth
        self.assertEqual(page.count("<polygon"), 4)
        for words in ("all_reduce of f32 on 2 ranks", "peal, registered", "gloo", "1K", "64K", "10 us"):
            self.assertIn(words, texts(page))

    def test_one_size_and_no_results_are_drawn_too(self):
        self.assertEqual(drawn([result("peal", "foreign", 4, 0.2)]).count("<polyline"), 2)
        self.assertNotIn("<polyline", drawn([]))
        self.assertNotIn("<polyline", drawn([result("peal", "default", 0, 0.2)]))  # a barrier has no bytes

    def test_words_are_escaped(self):
        self.assertIn("a<b", texts(drawn([result("a<b", "default", 4, 1)])))

    def test_steps_are_bars_beside_gloo(self):
        page = drawn([{"what": "a step", "backend": backend, "us": us}
                      for backend, us in (("gloo", 200), ("gloo", 210), ("peal", 50))])
        self.assertEqual(page.count("<rect"), 3)  # and the background
        self.assertIn("a step", texts(page))

    def test_a_report_of_losses_is_one_line_over_the_steps(self):
        page = drawn_text("10 3.5\n20 2.25\n")
        # The left half of 460 at step 10; the losses lie between 2 and 4.
        self.assertIn('<polyline points="292.0,131.0 522.0,318.5"', page)
        for words in ("0", "20", "2", "4", "step"):
            self.assertIn(words, texts(page))
        self.assertNotIn("1.5", texts(page))


if __name__ == "__main__":
    unittest.main()
