"""The tree follows the map in layers.txt, and the check detects violations."""
import pathlib
import tempfile
import unittest

import check

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = {"base": set(), "net": {"base"}, "group": {"base"}, "train": {"base", "group"},
          "backends": {"base", "group"}, "backends/native": {"base", "net", "group"},
          "python": {"base", "group"}}


class TheTree(unittest.TestCase):
    def test_keeps_to_the_map(self):
        found = check.violations(HERE.parent.parent, check.read_layers(HERE / "layers.txt"))
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_has_been_found(self):
        tree = check.Tree(HERE.parent.parent, check.read_layers(HERE / "layers.txt"))
        self.assertIn("peal/base/error.h", tree.sources)


class TheMap(unittest.TestCase):
    def test_has_no_cycles(self):
        layers = check.read_layers(HERE / "layers.txt")
        settled = {"all"}
        while True:
            ready = {folder for folder, others in layers.items()
                     if others - {folder} <= settled} - settled
            if not ready:
                break
            settled |= ready
        self.assertEqual(set(layers) - settled, set())


class TheCheck(unittest.TestCase):
    def check(self, files):
        """The violations in a tree of these files, {path under peal/, or of python/: text}."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, "" if name.startswith("python/") else "peal", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check.violations(root, LAYERS)

    def test_accepts_includes_that_the_map_allows(self):
        self.assertEqual([], self.check({
            "net/a.cpp": '#include "peal/base/b.h"\n#include "peal/net/c.h"\n::socket(1, 2, 3);\n',
            "backends/native/a.h": '#include "peal/net/b.h"\n',
            "train/a.h": "#include <torch/torch.h>\n",
            "python/core/a.h": '#include <torch/torch.h>\n#include "python/core/b.h"\n'}))

    def test_rejects_an_include_that_the_map_does_not_allow(self):
        self.assertEqual(["peal/backends/mpi/a.cpp: backends may not include peal/net/b.h",
                          "peal/base/a.h: base may not include peal/net/b.h"],
                         self.check({"backends/mpi/a.cpp": '#include "peal/net/b.h"\n',
                                     "base/a.h": '# include "peal/net/b.h"\n'})[:2])

    def test_rejects_python_beyond_its_row_and_includes_of_python(self):
        self.assertEqual(["peal/base/a.h: base may not include python/core/b.h",
                          "python/core/b.h: python may not include peal/net/a.h"],
                         self.check({"python/core/b.h": '#include "peal/net/a.h"\n',
                                     "base/a.h": '#include "python/core/b.h"\n'}))

    def test_rejects_a_folder_without_a_row_in_the_map(self):
        self.assertEqual(["peal/attic/a.h: layers.txt has no row for this folder"],
                         self.check({"attic/a.h": ""}))

    def test_ignores_tests(self):
        self.assertEqual([], self.check({"base/a_test.cpp": '#include "peal/net/b.h"\n'}))

    def test_rejects_torch_outside_of_train(self):
        self.assertEqual(["peal/net/a.cpp: only train and python may include ATen/ATen.h"],
                         self.check({"net/a.cpp": "#include <ATen/ATen.h>\n"}))

    def test_rejects_socket_calls_outside_of_net(self):
        self.assertEqual(["peal/group/a.cpp: only net may call ::connect"],
                         self.check({"group/a.cpp": "// ::bind() is not called here\n"
                                                    "int r = ::connect(fd, a, n); f::accept();\n"}))

    def test_rejects_fmt_in_a_header(self):
        self.assertEqual(["peal/net/a.h: no header may include fmt/format.h"],
                         self.check({"net/a.h": "#include <fmt/format.h>\n"}))

    def test_rejects_installed_headers_that_include_other_headers(self):
        self.assertEqual(["peal/base/a.h: users include it, so it may not include hwy/base.h",
                          "peal/base/a.h: users include it, so peal/base/b.h must be among "
                          "HEADERS too"],
                         self.check({"base/a.h": '#include <hwy/base.h>\n#include "peal/base/b.h"\n',
                                     "base/b.h": "#include <hwy/base.h>\n",
                                     "base/CMakeLists.txt": "peal_module(base HEADERS a.h)\n"}))

    def test_rejects_links_that_differ_from_the_includes(self):
        self.assertEqual(["peal/net/CMakeLists.txt: includes base but does not link it",
                          "peal/net/CMakeLists.txt: links group but does not include it"],
                         self.check({"net/a.cpp": '#include "peal/base/b.h"\n',
                                     "net/CMakeLists.txt": "peal_module(net\n  SOURCES a.cpp\n"
                                                           "  LINKS peal::group fmt::fmt\n"
                                                           "  TESTS a_test.cpp\n"
                                                           "  TEST_LINKS peal::train)\n"}))


if __name__ == "__main__":
    unittest.main()
