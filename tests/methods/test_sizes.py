"""A method is a short file: adding one stays cheap, and reading one too."""

import ast
from pathlib import Path
from statistics import median

import sarb.methods
from sarb.registry import METHODS

FOLDER = Path(sarb.methods.__file__).parent
#: files of methods, and those that hold what several of them share; together.py has no method in it
FILES = {path.split(":")[0].rsplit(".", 1)[1] for path in METHODS.values()} | {
    "base",
    "semantic",
    "transfer",
    "pairs",
}


def lines_of(file):
    """All lines without docstrings; comments and blank lines count."""
    text = file.read_text(encoding="utf-8")
    lines = set(range(1, len(text.splitlines()) + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_most_methods_are_short_and_none_is_long():
    sizes = {name: lines_of(FOLDER / f"{name}.py") for name in FILES}
    assert median(sizes.values()) < 80
    assert {name: size for name, size in sizes.items() if size > 150} == {}
