"""Finds where the sources under peal/ and python/, and peal's build files, violate the map in
layers.txt.

`python3 check.py [ROOT]` prints the violations. Called by architecture_test.py, as a ctest test.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SOCKET_CALL = re.compile(r"(?<![\w>])::(socket|socketpair|bind|listen|connect|accept4?|shutdown|[gs]etsockopt)\s*\(")
MODULE = re.compile(r"peal_(?:train_)?module\(([^)]*)\)")
ROOMS = ("peal", "python")
PARTS_WITH_TORCH = ("train", "python")
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
HIDDEN = re.compile(r"(hwy|openssl|CLI|nlohmann|benchmark|gtest|gmock)/|zlib\.h|hwloc\.h")


def read_layers(path):
    """{folder: the folders that it may include}"""
    layers = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            folder, others = line.split(":")
            layers[folder] = set(others.split())
    for others in layers.values():
        if "all" in others:
            others.update(layers.keys() - {"python"})
    return layers


def read_modules(text):
    """{keyword: words} of all calls of peal_module in a CMakeLists.txt"""
    arguments = {"": [], "SOURCES": [], "HEADERS": [], "TESTS": [], "LINKS": [], "TEST_LINKS": []}
    for words in MODULE.findall(text):
        keyword = ""
        for word in words.split():
            if word in arguments:
                keyword = word
            else:
                arguments[keyword].append(word)
    return arguments


class Tree:
    def __init__(self, root, layers):
        self.root = root
        self.layers = layers
        files = sorted(path for room in ROOMS for path in (root / room).rglob("*")
                       if path.is_file())
        self.sources = [str(path.relative_to(root)) for path in files
                        if path.suffix in (".h", ".cpp") and not is_for_tests(path)]
        self.modules = {str(path.parent.relative_to(root)): read_modules(path.read_text())
                        for path in files
                        if path.name == "CMakeLists.txt" and MODULE.search(path.read_text())}

    def text(self, name):
        return (self.root / name).read_text()

    def includes(self, name):
        return INCLUDE.findall(self.text(name))

    def folder(self, name):
        """The row of the table for peal/a/b/x.h, python/a/x.h, or a file like peal/x.h; or None."""
        room, *parts = name.split("/")[:-1]
        if room != "peal":
            return room if room in self.layers else None
        if not parts:
            file = name.removeprefix("peal/")
            return file if file in self.layers else None
        for length in range(len(parts), 0, -1):
            if "/".join(parts[:length]) in self.layers:
                return "/".join(parts[:length])
        return None

    def sources_of(self, place):
        """The sources of the module in this folder: those below it that do not belong to a deeper module."""
        homes = {name: max((home for home in self.modules if name.startswith(home + "/")),
                           key=len, default=None)
                 for name in self.sources}
        return [name for name, home in homes.items() if home == place]

    def reached(self, names):
        """The folders whose headers these files include."""
        return {self.folder(header) for name in names for header in self.includes(name)
                if is_ours(header)}


def is_ours(header):
    return header.startswith(tuple(f"{room}/" for room in ROOMS))


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
            if not is_ours(header):
                continue
            if tree.folder(header) not in tree.layers[folder] | {folder}:
                yield f"{name}: {folder} may not include {header}"


def check_torch(tree):
    for name in tree.sources:
        if not (tree.folder(name) or "").startswith(PARTS_WITH_TORCH):
            for header in filter(TORCH.match, tree.includes(name)):
                yield f"{name}: only train and python may include {header}"


def check_sockets(tree):
    for name in tree.sources:
        if tree.folder(name) != "net":
            for call in SOCKET_CALL.findall(COMMENT.sub("", tree.text(name))):
                yield f"{name}: only net may call ::{call}"


def check_headers(tree):
    """No header includes fmt, because LibTorch has its own fmt. A user's compiler must find all
    files that an installed header includes."""
    installed = {f"{place}/{word}" for place, arguments in tree.modules.items()
                 for word in arguments["HEADERS"]}
    for name in filter(lambda name: name.endswith(".h"), tree.sources):
        for header in tree.includes(name):
            if header.startswith("fmt/"):
                yield f"{name}: no header may include {header}"
            if name in installed and HIDDEN.match(header):
                yield f"{name}: users include it, so it may not include {header}"
            if name in installed and header.startswith("peal/") and header not in installed:
                yield f"{name}: users include it, so {header} must be among HEADERS too"


def check_links(tree):
    """The link graph equals the include graph: LINKS names exactly the folders that a module
    includes."""
    for place, arguments in tree.modules.items():
        own = tree.folder(f"{place}/x")
        linked = {folder_of_target(tree, word.removeprefix("peal::"))
                  for word in arguments["LINKS"] if word.startswith("peal::")} - {own}
        reached = tree.reached(tree.sources_of(place)) - {own}
        for folder in sorted(reached - linked, key=str):
            yield f"{place}/CMakeLists.txt: includes {folder} but does not link it"
        for folder in sorted(linked - reached, key=str):
            yield f"{place}/CMakeLists.txt: links {folder} but does not include it"


def folder_of_target(tree, target):
    """peal::transport_shm is a part of transport, peal::backends_native is backends/native."""
    for folder in sorted(tree.layers, key=len, reverse=True):
        if (target + "_").startswith(folder.replace("/", "_") + "_"):
            return folder
    return target


CHECKS = (check_includes, check_torch, check_sockets, check_headers, check_links)


def violations(root, layers):
    tree = Tree(pathlib.Path(root), layers)
    return [violation for check in CHECKS for violation in check(tree)]


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    found = violations(sys.argv[1] if len(sys.argv) > 1 else here.parent.parent,
                       read_layers(here / "layers.txt"))
    print(*found, sep="\n")
    sys.exit(bool(found))
