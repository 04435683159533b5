"""The rules of plain English that a program can check: words to avoid, and sentences of more than 30 words.

Checks Markdown, and the comments, docstrings and string literals of sources, scripts and templates. Called by
`scripts/lint prose`. CONTRIBUTING.md has the rules.
"""
import io
import pathlib
import re
import subprocess
import tokenize

LONGEST = 30  # words in a sentence

# Words to avoid, and what to write instead.
WORDS = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), advice) for pattern, advice in [
    (r"whoever|whom|of whom", "name the rank, the peer or the caller"),
    (r"who", "name the rank, the peer or the caller"),
    (r"(?<!there )(?:(?-i:is none)|are none)", '"is not a ...", "does not exist"'),
    (r"(?<!there )is no(?! longer| more\b)", '"is not a ..."'),
    (r"has it", '"as the ... says"'),
    (r"befalls?|befell|befallen", '"happens to"'),
    (r"in vain", '"without success"'),
    (r"none the wiser", '"unaffected"'),
    (r"mend(?:s|ed|ing)?", '"fix"'),
    (r"(?:see|sees|saw|seen) to", '"handle"'),
    (r"be it", '"either"'),
    (r"at last", '"finally"'),
    (r"so many", '"N", "this many"'),
    (r"thereof|lest", "rephrase"),
    (r"(?:stand|stands|stood) still", '"is stopped", "does not progress"'),
    (r"(?:is|are|was|were|be|been|being) told", '"receives", "is notified"'),
    (r"hears?|heard", '"receives", "is notified"'),
    (r"(?:lay|lays|laid) down", '"stores"'),
    (r"(?:look|looks) up where|(?:make|makes|made) something of", '"reads", "handles"'),
    (r"the own", '"this rank\'s"'),
    (r"(?:take|takes|took) it out of|(?:leave|leaves) it be|(?:let|lets|letting) go", '"remove", "keep", "release"'),
]]
QUESTION = re.compile(r"\bwho\b[^.]*\?", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")
LABEL = re.compile(r"^(\s*[-*|]|\s*\d+\.|\s*(Shape|Units|Order|Threads|Errors|Cost|Source|Memory):)")
BLOCK = re.compile(r"/\*(.*?)\*/", re.DOTALL)  # a comment in C
TABLE = re.compile(r"\S\s{3,}\S")  # columns, or code
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
C_LIKE = (".h", ".cpp", ".c")
PYTHON = (".py", ".pyi")
CHECKED = (*C_LIKE, *PYTHON, ".md", ".txt", ".cmake", ".sh")
# They name the words, or quote others.
EXEMPT = {"scripts/prose.py", "CONTRIBUTING.md", "LICENSE"}


class Paragraph:
    """Consecutive lines of prose, with their numbers."""

    def __init__(self):
        self.lines = []

    def text(self):
        return " ".join(text for _, text in self.lines)


def paragraphs_of(lines):
    """From pairs (number, text or None): None or an empty text ends a paragraph, a label or an item begins one."""
    current = Paragraph()
    for number, text in lines:
        if text is None or not text.strip() or LABEL.match(text):
            if current.lines:
                yield current
            current = Paragraph()
        if text is not None and text.strip() and not TABLE.search(text.strip()):
            current.lines.append((number, text.strip()))
    if current.lines:
        yield current


def comment_lines(source, mark):
    """Whole comment lines in sequence, and each comment after code as a separate paragraph."""
    for number, line in enumerate(source.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith("#!"):
            yield number, None
            continue
        if stripped.startswith(mark):
            text = stripped.lstrip(mark[0])
            if text.startswith("   "):  # an example, or a line of a table
                yield number, None
                yield number, text.strip()
                yield number, None
            else:
                yield number, text.strip()
            continue
        yield number, None
        code = STRING.sub(lambda m: "-" * len(m.group()), line)
        at = code.find(mark if mark == "//" else f" {mark}")  # not in ${#x} of a shell
        if at > 0:
            yield number, line[at:].strip().lstrip(mark[0]).strip()
            yield number, None


def literal_lines(source):
    for number, line in enumerate(source.split("\n"), 1):
        if line.lstrip().startswith(("//", "#")):
            continue
        for text in STRING.findall(line):
            if " " in text:
                yield number, text
                yield number, None


def python_lines(source):
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! ")
        elif token.type == tokenize.STRING and " " in token.string:
            yield token.start[0], None
            for offset, line in enumerate(token.string.strip("rbf\"'").split("\n")):
                yield token.start[0] + offset, line
            yield token.end[0], None


def markdown_lines(source):
    is_code = False
    for number, line in enumerate(source.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code or line.startswith(("#", "    ")):
            pass
        elif line.lstrip().startswith("|"):
            for cell in line.split("|"):
                yield number, re.sub(r"`[^`]*`|(?<=\])\([^)]*\)", "X", cell)
                yield number, None
            continue
        else:
            yield number, re.sub(r"`[^`]*`|(?<=\])\([^)]*\)", "X", line)
            continue
        yield number, None


def kind_of(path):
    """The ending that stands for the language: a template's without ".in", a script's by its first line."""
    name = path.name.removesuffix(".in")
    if "." in name:
        return pathlib.PurePath(name).suffix
    with path.open("rb") as file:
        first = file.readline()
    if not first.startswith(b"#!"):
        return ""
    return ".py" if b"python" in first else ".sh"


def prose_of(kind, source):
    if kind == ".md":
        return list(paragraphs_of(markdown_lines(source)))
    if kind in PYTHON:
        return list(paragraphs_of(python_lines(source)))
    if kind == ".sh":
        return [*paragraphs_of(comment_lines(source, "#")), *paragraphs_of(literal_lines(source))]
    if kind in C_LIKE:
        if kind == ".c":
            source = BLOCK.sub(lambda block: re.sub("^", "// ", block.group(1), flags=re.MULTILINE), source)
        return [*paragraphs_of(comment_lines(source, "//")), *paragraphs_of(literal_lines(source))]
    return list(paragraphs_of(comment_lines(source, "#")))


def findings(kind, source):
    """(line, message) for each fault in a source of this kind."""
    for paragraph in prose_of(kind, source):
        for sentence in SENTENCE_END.split(paragraph.text()):
            words = len(sentence.split())
            if words > LONGEST:
                yield paragraph.lines[0][0], f"a sentence of {words} words, at most {LONGEST}: \"{sentence[:60]}...\""
        for number, text in paragraph.lines:
            for pattern, advice in WORDS:
                found = pattern.search(text)
                if found and not (found.group().lower() == "who" and QUESTION.search(paragraph.text())):
                    yield number, f'"{found.group()}": write {advice}'


def check(root):
    """Prints a line for each finding; returns True without findings."""
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                           cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")
    good = True
    for name in names:
        path = pathlib.Path(root, name)
        if name in EXEMPT or "/corpus/" in name or "/golden/" in name or not path.is_file():
            continue
        kind = kind_of(path)
        if kind not in CHECKED:
            continue
        for number, message in findings(kind, path.read_text()):
            print(f"{name}:{number}: {message}")
            good = False
    return good
