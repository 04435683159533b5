"""The stubs and the extension modules have the same names, parameters and defaults."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import unittest
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator

import peal

FOLDER = Path(peal.__file__).parent
# Names that Python or pybind11 adds.
FROM_PYBIND = {"__init__", "__new__", "__module__", "__doc__", "__qualname__", "__release_buffer__",
               "_pybind11_conduit_v1_", "__static_attributes__", "__firstlineno__"}
# pybind11's names for positional-only parameters.
UNNAMED = re.compile(r"arg\d+$")


@dataclass(frozen=True)
class Parameter:
    name: str  # empty for a positional-only parameter
    named_only: bool
    default: str | None  # its repr


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...]


# The members of a module or class: "property", "value", "class", or a signature.
Members = dict[str, "str | Signature"]


def signature_of_ast(arguments: ast.arguments, module: ModuleType, is_method: bool) -> Signature:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    found = []
    for place, (argument, default) in enumerate(zip(positional, defaults)):
        unnamed = place < len(arguments.posonlyargs)
        found.append(Parameter("" if unnamed else argument.arg, False, _value(default, module)))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        found.append(Parameter(argument.arg, True, _value(default, module)))
    return Signature(tuple(found[1:] if is_method else found))


def _value(default: ast.expr | None, module: ModuleType) -> str | None:
    return None if default is None else repr(eval(ast.unparse(default), vars(module)))


def signature_of_pybind(doc: str, module: ModuleType, is_method: bool) -> Signature:
    """From the line that pybind11 puts before a docstring."""
    line = doc.split("\n")[0]
    # The line has each default as its repr, an expression with names of the module.
    function = ast.parse(f"def {line}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    signature = signature_of_ast(function.args, module, is_method)
    return Signature(tuple(
        Parameter("" if UNNAMED.match(p.name) else p.name, p.named_only, p.default)
        for p in signature.parameters))


def signature_of_python(function: Any) -> Signature:
    """From a method that is written in Python."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return Signature(tuple(
        Parameter(p.name, p.kind is p.KEYWORD_ONLY,
                  None if p.default is p.empty else repr(p.default)) for p in parameters))


def stub_of(body: list[ast.stmt], module: ModuleType, in_class: bool = False) -> Iterator[
        tuple[str, str | Signature]]:
    """Yields each name with its kind, and an overloaded name once for each overload."""
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, "value"
        elif isinstance(node, ast.ClassDef):
            yield node.name, "class"
        elif isinstance(node, ast.FunctionDef):
            decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
            if "property" in decorators:
                yield node.name, "property"
            else:
                is_method = in_class and "staticmethod" not in decorators
                yield node.name, signature_of_ast(node.args, module, is_method)


def module_of(module: ModuleType, owner: Any) -> Members:
    found: Members = {}
    for name, value in vars(owner).items():
        if name in FROM_PYBIND or (owner is module and name.startswith("__")):
            continue
        if isinstance(value, staticmethod):
            value = getattr(owner, name)
            found[name] = signature_of_pybind(value.__doc__, module, False)
        elif isinstance(value, property):
            found[name] = "property"
        elif inspect.isclass(value):
            found[name] = "class"
        elif inspect.isfunction(value):
            found[name] = signature_of_python(value)
        elif callable(value) and isinstance(value.__doc__, str) and "(" in value.__doc__:
            found[name] = signature_of_pybind(value.__doc__, module, owner is not module)
        else:
            found[name] = "value"
    return found


NEED_TORCH = {"DistributedDataParallel", "TorchOptions"}


class StubsTest(unittest.TestCase):
    def compare(self, where: str, module: ModuleType, owner: Any, body: list[ast.stmt]) -> None:
        actual = module_of(module, owner)
        stated = list(stub_of(body, module, in_class=owner is not module))
        public = {name for name, _ in stated if not _is_private(name)}
        # Python defines __buffer__ from 3.12 on.
        self.assertEqual(public - {"__buffer__"}, set(actual) - {"__buffer__"}, f"names of {where}")
        for name, what in stated:
            if name in actual and name != "__buffer__":
                self.assertEqual(what, actual[name], f"{where}.{name}: the stub and the module")

    def compare_module(self, name: str) -> None:
        module = importlib.import_module(name)
        stub = ast.parse((FOLDER / f"{name.split('.')[-1]}.pyi").read_text())
        self.compare(name, module, module, stub.body)
        for node in stub.body:
            if isinstance(node, ast.ClassDef) and not _is_private(node.name):
                self.compare(f"{name}.{node.name}", module, getattr(module, node.name), node.body)

    def test_the_core_matches_its_stub(self) -> None:
        self.compare_module("peal._core")

    def test_the_build_module_matches_its_stub(self) -> None:
        self.compare_module("peal._build")

    def test_the_modules_for_torch_match_their_stubs(self) -> None:
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("torch is not installed")
        try:
            self.compare_module("peal._c10d")
            self.compare_module("peal._hvd")
        except ImportError:
            self.skipTest("this peal was built without torch")

    def test_the_package_has_all_its_public_names(self) -> None:
        self.assertTrue((FOLDER / "py.typed").exists())
        for name in peal.__all__:
            if name not in NEED_TORCH:
                self.assertTrue(hasattr(peal, name), name)

    def test_everything_public_has_a_docstring(self) -> None:
        from peal import _core

        documented = {name: getattr(peal, name) for name in peal.__all__
                      if name not in NEED_TORCH}
        for owner in (_core.ProcessGroup, _core.Work, _core.Memory, _core.ReduceOp):
            documented |= {f"{owner.__name__}.{name}": value for name, value in vars(owner).items()
                           if not name.startswith("_")}
        for name, value in documented.items():
            if callable(value) or isinstance(value, (property, staticmethod)):
                text = (inspect.getdoc(value) or "").strip()
                self.assertFalse(re.fullmatch(r"(\w+\(.*\) -> .*)?", text), f"{name} says nothing")


class ComparisonTest(unittest.TestCase):
    """The differences that the comparison above must find."""

    def signature(self, line: str) -> Signature:
        from peal import _core

        return signature_of_pybind(line, _core, True)

    def test_a_different_name_default_or_kind_of_a_parameter_is_found(self) -> None:
        one = self.signature("f(self: object, root: int, *, timeout: float | None = None) -> None")
        self.assertEqual(one, self.signature("f(self, root, *, timeout=None)"))
        for other in ("f(self, top, *, timeout=None)", "f(self, root=0, *, timeout=None)",
                      "f(self, root, *, timeout=1)", "f(self, root, timeout=None)",
                      "f(self, root)", "f(self, root, /, *, timeout=None)"):
            self.assertNotEqual(one, self.signature(other), other)

    def test_defaults_are_compared_by_value(self) -> None:
        self.assertEqual(self.signature("f(self, source=-1)"),
                         self.signature("f(self, source=ANY_SOURCE)"))

    def test_parameters_without_a_name_are_positional_only(self) -> None:
        self.assertEqual(self.signature("f(self, arg0: str)"), self.signature("f(self, what, /)"))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not _is_dunder(name)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


if __name__ == "__main__":
    unittest.main()
