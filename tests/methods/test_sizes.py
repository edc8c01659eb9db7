"""A method is a short file: adding one stays cheap, and reading one too."""

import ast
from pathlib import Path
from statistics import median

import sarb.methods

FILES = sorted(Path(sarb.methods.__file__).parent.glob("*.py"))


def lines_of(file):
    """Lines of code: without docstrings, comments and blank lines."""
    text = file.read_text(encoding="utf-8")
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.split("#")[0].strip()}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_most_methods_are_short_and_none_is_long():
    sizes = {file.stem: lines_of(file) for file in FILES if file.stem != "__init__"}
    assert median(sizes.values()) < 80
    assert {name: size for name, size in sizes.items() if size > 150} == {}
