"""Finds where the sources under peal/ and their build files leave the map in layers.txt.

`python3 check.py [ROOT]` prints the violations. Called by architecture_test.py, as a ctest test.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SOCKET_CALL = re.compile(r"(?<![\w>])::(socket|socketpair|bind|listen|connect|accept4?)\s*\(")
MODULE = re.compile(r"peal_module\(\s*([\w/]+)([^)]*)\)")
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
HIDDEN = re.compile(r"(fmt|hwy|openssl|CLI|nlohmann|benchmark|gtest|gmock)/|zlib\.h|hwloc\.h")
# What a user of the library includes, and what is installed.
PUBLIC = ("base", "group", "init", "train")


def read_layers(path):
    """{folder: the folders that it may include}"""
    layers = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            folder, others = line.split(":")
            layers[folder] = set(others.split())
    for others in layers.values():
        if "all" in others:
            others.update(layers)
    return layers


class Tree:
    def __init__(self, root, layers):
        self.root = root
        self.layers = layers
        files = sorted(path for path in (root / "peal").rglob("*") if path.is_file())
        self.sources = [str(path.relative_to(root)) for path in files
                        if path.suffix in (".h", ".cpp") and not is_for_tests(path)]
        self.builds = [str(path.relative_to(root)) for path in files
                       if path.name == "CMakeLists.txt" and path.parent.name != "peal"]

    def text(self, name):
        return (self.root / name).read_text()

    def includes(self, name):
        return INCLUDE.findall(self.text(name))

    def folder(self, name):
        """The row of the table that peal/a/b/x.h belongs to, or None."""
        parts = name.split("/")[1:-1]
        for length in range(len(parts), 0, -1):
            if "/".join(parts[:length]) in self.layers:
                return "/".join(parts[:length])
        return None

    def reached(self, names):
        """The folders whose headers these files include."""
        return {self.folder(header) for name in names for header in self.includes(name)
                if header.startswith("peal/")}


def is_for_tests(path):
    return (path.name.endswith("_test.cpp") or path.name.startswith("test_") or
            "testing" in path.parts)


def check_includes(tree):
    for name in tree.sources:
        folder = tree.folder(name)
        if folder is None:
            yield f"{name}: layers.txt has no row for this folder"
            continue
        for header in tree.includes(name):
            if not header.startswith("peal/"):
                continue
            if tree.folder(header) not in tree.layers[folder] | {folder}:
                yield f"{name}: {folder} may not include {header}"


def check_torch(tree):
    for name in tree.sources:
        if tree.folder(name) != "train":
            for header in filter(TORCH.match, tree.includes(name)):
                yield f"{name}: only train may include {header}"


def check_sockets(tree):
    for name in tree.sources:
        if tree.folder(name) != "net":
            for call in SOCKET_CALL.findall(COMMENT.sub("", tree.text(name))):
                yield f"{name}: only net may call ::{call}"


def check_public_headers(tree):
    """A user's compiler must find all that a public header includes."""
    for name in tree.sources:
        if tree.folder(name) not in PUBLIC or not name.endswith(".h"):
            continue
        for header in tree.includes(name):
            if HIDDEN.match(header):
                yield f"{name}: a public header may not include {header}"
            if header.startswith("peal/") and tree.folder(header) not in PUBLIC:
                yield f"{name}: a public header may not include {header}, which is not installed"


def check_links(tree):
    """The link graph is the include graph: LINKS names the folders that a module includes, no
    more and no fewer. (INTERFACE parts of CMake reach further; what is used is named.)"""
    for build in tree.builds:
        place = build.rsplit("/", 1)[0]
        inner = [other.rsplit("/", 1)[0] for other in tree.builds if other != build]
        mine = [name for name in tree.sources if name.startswith(place + "/") and
                not any(name.startswith(deeper + "/") and deeper.startswith(place + "/")
                        for deeper in inner)]
        modules = MODULE.findall(tree.text(build))
        if not modules:
            continue
        linked = set()
        for _, arguments in modules:
            keyword = ""
            for word in arguments.split():
                keyword = word if word in ("SOURCES", "TESTS", "LINKS", "TEST_LINKS") else keyword
                if keyword == "LINKS" and word.startswith("peal::"):
                    linked.add(folder_of_target(tree, word.removeprefix("peal::")))
        own = tree.folder(f"{place}/CMakeLists.txt")
        reached = tree.reached(mine) - {own}
        linked.discard(own)
        for folder in sorted(reached - linked, key=str):
            yield f"{build}: includes {folder} but does not link it"
        for folder in sorted(linked - reached, key=str):
            yield f"{build}: links {folder} but does not include it"


def folder_of_target(tree, target):
    """peal::transport_shm is a part of transport, peal::backends_native is backends/native."""
    for folder in sorted(tree.layers, key=len, reverse=True):
        if (target + "_").startswith(folder.replace("/", "_") + "_"):
            return folder
    return target


CHECKS = (check_includes, check_torch, check_sockets, check_public_headers, check_links)


def violations(root, layers):
    tree = Tree(pathlib.Path(root), layers)
    return [violation for check in CHECKS for violation in check(tree)]


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    found = violations(sys.argv[1] if len(sys.argv) > 1 else here.parent.parent,
                       read_layers(here / "layers.txt"))
    print(*found, sep="\n")
    sys.exit(bool(found))
