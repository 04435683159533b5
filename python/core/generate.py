"""Generates two files from _core.pyi.in, the only source of the signatures and texts of peal._core:
the stub _core.pyi, and docs.h with the docstrings that pybind11 binds.

    python generate.py _core.pyi.in _core.pyi docs.h

In the source, a method with `@_both` has a twin NAME_async with the same parameters, which returns a Work.
In docs.h, the text of ProcessGroup.all_gather is kAllGather, the text of Work.wait is kWorkWait.
"""

from __future__ import annotations

import ast
import copy
import sys
from pathlib import Path
from typing import Iterator

BOTH = "_both"


def is_both(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(d, ast.Name) and d.id == BOTH for d in node.decorator_list)


def without_both(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.FunctionDef):
        node = copy.copy(node)
        node.decorator_list = [d for d in node.decorator_list
                               if not (isinstance(d, ast.Name) and d.id == BOTH)]
    return node


def twin(node: ast.FunctionDef) -> ast.FunctionDef:
    started = copy.deepcopy(without_both(node))
    assert isinstance(started, ast.FunctionDef)
    started.name += "_async"
    started.returns = ast.Name("Work")
    started.body = [ast.Expr(ast.Constant(...))]
    return started


def with_twins(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The twins of a method's overloads follow after the last overload."""
    twins: list[ast.FunctionDef] = []
    for node, after in zip(body, [*body[1:], None]):
        yield without_both(node)
        if isinstance(node, ast.FunctionDef) and is_both(node):
            twins.append(twin(node))
            if not isinstance(after, ast.FunctionDef) or after.name != node.name:
                yield from twins
                twins = []


def stub_of(source: ast.Module) -> str:
    module = copy.deepcopy(source)
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            node.body = list(with_twins(node.body))
    return "# Made by python/core/generate.py.\n" + ast.unparse(ast.fix_missing_locations(module)) + "\n"


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.strip("_").split("_"))


def texts_of(source: ast.Module) -> Iterator[tuple[str, str]]:
    yield "kModule", ast.get_docstring(source) or ""
    for node in source.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        if text := ast.get_docstring(node):
            yield f"k{node.name if isinstance(node, ast.ClassDef) else camel(node.name)}", text
        for method in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(method, ast.FunctionDef) and (text := ast.get_docstring(method)):
                owner = "" if node.name == "ProcessGroup" else node.name
                yield f"k{owner}{camel(method.name)}", text


def header_of(source: ast.Module) -> str:
    constants = "\n".join(f'inline constexpr const char* {name} = R"doc({text})doc";'
                          for name, text in texts_of(source))
    return ("// Made by python/core/generate.py.\n#pragma once\n\n"
            f"namespace peal::python::docs {{\n\n{constants}\n\n}}  // namespace peal::python::docs\n")


def main() -> None:
    source, stub, header = map(Path, sys.argv[1:])
    tree = ast.parse(source.read_text())
    header.parent.mkdir(parents=True, exist_ok=True)
    stub.write_text(stub_of(tree))
    header.write_text(header_of(tree))


if __name__ == "__main__":
    main()
