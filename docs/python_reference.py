#!/usr/bin/env python3
"""Writes docs/guide/python_reference.md from the peal that is installed: signatures from its types,
texts from its docstrings. It needs no torch.

    python docs/python_reference.py

Docstrings are read as they are written: a formula, paragraphs, code that is indented, and a line
for each of Shape, Order, Threads, Errors and Cost.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Iterator

import peal
import peal._objects

OUTPUT = Path(__file__).parent / "guide/python_reference.md"
PACKAGE = Path(peal.__file__).parent
SOURCE = Path(__file__).parent.parent / "python/core/_core.pyi.in"
WIDTH = 100

LABEL = re.compile(r"(Shape|Order|Threads|Errors|Cost): ")
FORMULA = re.compile(r"(data|output|block r of output)(\[i\])? = ")
PYBIND_SIGNATURE = re.compile(r"\w+\(.*\) -> .*\n\n")

# Where the parts of a group begin, and what is said of them.
PARTS = {
    "rank": ("The group", None),
    "send": ("Between two ranks", None),
    "broadcast": ("Collectives on whole arrays", None),
    "scatter": ("Collectives that give each rank a block", None),
    "broadcast_object": ("Collectives over objects", peal._objects),
}

Definition = ast.FunctionDef | ast.ClassDef


# ---- texts


def markdown(text: str) -> str:
    """Of a docstring."""
    paragraphs = PYBIND_SIGNATURE.sub("", inspect.cleandoc(text), count=1).split("\n\n")
    text = "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)
    return text.replace("\n```\n\n```python\n", "\n\n")  # one example, with an empty line in it


def _paragraph(text: str) -> str:
    lines = text.split("\n")
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```python", *(line[4:] for line in lines), "```"])
    if FORMULA.match(text):
        return f"```text\n{text}\n```"
    if LABEL.match(text):
        text = re.sub(r"\n +", " ", text)
        assert all(map(LABEL.match, text.split("\n"))), f"further lines are not indented: {text}"
        return "\n".join(LABEL.sub(r"- **\1:** ", line) for line in text.split("\n"))
    if any(line.startswith("- ") for line in lines[1:]) and not text.startswith("- "):
        head, *rest = re.split(r"\n(?=- )", text)
        return "\n".join([_joined(head), "", *rest])
    return text if text.startswith("- ") else _joined(text)


def _joined(text: str) -> str:
    return re.sub(r"\n\s*", " ", re.sub(r"::$", ":", text))


def docstring(where: object) -> str:
    """Of what is imported, or of a file's syntax tree, where importing it may fail."""
    if isinstance(where, (ast.Module, ast.ClassDef, ast.FunctionDef)):
        text = ast.get_docstring(where)
    else:
        text = inspect.getdoc(where)
    assert text, f"{where} has no docstring"
    return markdown(text)


# ---- signatures


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def find(module: ast.Module, name: str) -> Definition:
    for node in module.body:
        if isinstance(node, Definition) and node.name == name:
            return node
    raise LookupError(name)


def public(text: str) -> str:
    """Without the underscores of the names that only types have."""
    return re.sub(r"\b_(?=[A-Z])", "", text)


def signature(function: ast.FunctionDef) -> str:
    arguments = function.args
    if arguments.args and arguments.args[0].arg == "self":
        arguments = ast.arguments(**{**vars(arguments), "args": arguments.args[1:]})
    returns = f" -> {text_of(function.returns)}" if function.returns else ""
    every = list(parameters(arguments))
    line = f"{function.name}({', '.join(every)}){returns}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{function.name}(", *(f"    {one}," for one in every), f"){returns}"])


def parameters(arguments: ast.arguments) -> Iterator[str]:
    positional = arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    yield from map(parameter, positional, defaults)
    if arguments.vararg:
        yield f"*{parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    yield from map(parameter, arguments.kwonlyargs, arguments.kw_defaults)


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {text_of(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{annotation}" + (f" = {text_of(default)}" if default else "")


def text_of(node: ast.AST) -> str:
    """As it is written here."""
    return public(ast.unparse(node)).replace("'", '"')


def is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list)


def code(lines: list[str]) -> str:
    return "\n".join(["```python", *lines, "```"])


# ---- sections


def section(level: int, title: str, *texts: str) -> Iterator[str]:
    yield f"{'#' * level} {title}"
    yield from texts


def function_section(level: int, function: ast.FunctionDef, owner: object) -> Iterator[str]:
    yield from section(level, function.name, code([signature(function)]),
                       docstring(getattr(owner, function.name)))


def overloads(body: list[ast.stmt]) -> dict[str, list[ast.FunctionDef]]:
    """A class's public methods, each with its forms, in the order of the stub."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found.setdefault(node.name, []).append(node)
    return found


def methods_section(level: int, definition: ast.ClassDef, owner: type) -> Iterator[str]:
    """A heading for each method. A method and its `_async` form share one."""
    methods = overloads(definition.body)
    properties = [forms[0] for forms in methods.values() if is_property(forms[0])]
    for name, forms in methods.items():
        if owner is peal.ProcessGroup and name in PARTS:
            title, module = PARTS[name]
            yield from section(level, title, *([docstring(module)] if module else []))
        if forms[0] in properties:
            if forms[0] is properties[0]:
                yield "\n".join(f"- `{p.name}: {text_of(p.returns or p)}`: "
                                f"{docstring(getattr(owner, p.name))}" for p in properties)
            continue
        lines = [signature(form) for form in forms]
        texts = [docstring(getattr(owner, name))]
        both = has_twin(forms[0])
        if both:
            texts.append(f"`{name}_async` takes the same and returns a `Work` at once.")
        title = f"{name}, {name}_async" if both else name
        yield from section(level + 1, title, code(lines), *texts)


def has_twin(function: ast.FunctionDef) -> bool:
    """An `_async` form: see python/core/generate.py."""
    return any(isinstance(d, ast.Name) and d.id == "_both" for d in function.decorator_list)


def constants(definition: ast.ClassDef) -> str:
    names = [node.target.id for node in definition.body
             if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    return "Constants: " + ", ".join(f"`{definition.name}.{name}`" for name in names) + "."


def aliases(stub: ast.Module, source: str) -> str:
    """What the names in signatures stand for, with the comments above them."""
    lines: list[str] = []
    all_lines = source.split("\n")
    for node in stub.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            above = all_lines[node.lineno - 2]
            lines += [above] if above.startswith("#") else []
            lines.append(f"{text_of(node.target)} = {text_of(node.value or node)}")
    return code(lines)


def any_source() -> str:
    text = inspect.getdoc(peal._core) or ""
    return next(p for p in text.split("\n\n") if p.startswith("`ANY_SOURCE`"))


def torch_section() -> Iterator[str]:
    """Of files that cannot be imported without torch."""
    module = tree(PACKAGE / "_torch.py")
    autoload = tree(PACKAGE.parent / "peal_autoload.py")
    yield from section(2, "torch.distributed", docstring(module), docstring(autoload))
    options = find(module, "TorchOptions")
    fields = ", ".join(text_of(node) for node in options.body if isinstance(node, ast.AnnAssign))
    yield from section(3, "TorchOptions", code([f"TorchOptions({fields})"]), docstring(options))
    yield from section(3, "DistError", docstring(find(module, "DistError")))
    yield from section(3, "peal_autoload.register", code(["register() -> None"]),
                       docstring(find(autoload, "register")))


def sections() -> Iterator[str]:
    file = SOURCE
    stub = tree(file)
    yield from section(
        1, "Python: reference",
        "All functions and classes of the package. `docs/python_reference.py` makes this page from the docstrings. "
        "[The guide](python.md) says how to begin.", docstring(peal))
    yield from section(2, "Start")
    init, spawn = find(stub, "init_process_group"), find(tree(PACKAGE / "_spawn.py"), "spawn")
    assert isinstance(init, ast.FunctionDef) and isinstance(spawn, ast.FunctionDef)
    yield from function_section(3, init, peal)
    yield from function_section(3, spawn, peal)
    stop, asked = find(tree(PACKAGE / "_stop.py"), "should_stop"), find(stub, "stop_requested")
    assert isinstance(stop, ast.FunctionDef) and isinstance(asked, ast.FunctionDef)
    yield from function_section(3, stop, peal)
    yield from function_section(3, asked, peal)
    yield from section(3, "python -m peal", docstring(tree(PACKAGE / "__main__.py")))
    for name in ("ProcessGroup", "Work", "ReduceOp", "Memory"):
        definition, owner = find(stub, name), getattr(peal, name)
        assert isinstance(definition, ast.ClassDef)
        yield from section(2, name, docstring(owner))
        if name == "ProcessGroup":
            yield "In signatures:"
            yield aliases(stub, file.read_text())
        if name == "ReduceOp":
            yield constants(definition)
        yield from methods_section(3 if name == "ProcessGroup" else 2, definition, owner)
    yield from section(2, "ANY_SOURCE", markdown(any_source()))
    yield from section(2, "Error", docstring(peal.Error))
    yield from section(2, "SpawnError", docstring(peal.SpawnError))
    yield from torch_section()


def reference() -> str:
    return "\n\n".join(sections()) + "\n"


if __name__ == "__main__":
    OUTPUT.write_text(reference())
