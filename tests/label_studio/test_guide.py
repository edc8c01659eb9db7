"""The page docs/label-studio.md: its commands exist, its Python runs, its table names the routes."""

import pytest
from typer.main import get_command

from sarb.cli.app import app
from tests.documentation.test_docs import table
from tests.documentation.tools import ROOT, blocks, commands, hurry

GUIDE = ROOT / "docs" / "label-studio.md"


def options(words):
    """Parse a command line down to the innermost sub-command."""
    command, name, rest = get_command(app), words[0], list(words[1:])
    while hasattr(command, "commands"):
        name, rest = rest[0], rest[1:]
        command = command.commands[name]
    return command.make_context(name, rest).params


def test_the_commands_and_their_options_exist():
    shown = [words for block in blocks(GUIDE) if block.language == "console" for words, _ in commands(block)]
    assert {tuple(words[1:4]) for words in shown} >= {
        ("data", "push", "label-studio"),
        ("data", "pull", "label-studio"),
    }
    assert all(options(words) for words in shown)
    assert {block.mark for block in blocks(GUIDE) if block.language == "console"} == {"needs-label-studio"}


def test_the_python_of_the_page_runs(monkeypatch, capsys):
    hurry(monkeypatch)
    (block,) = [block for block in blocks(GUIDE) if block.language == "python"]
    exec(compile(block.text, "label-studio.md", "exec"), {})
    assert "images have a known label" in capsys.readouterr().out


def test_the_routes_of_the_table_are_served():
    pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")
    from sarb.serve.api_label_studio import label_studio_routes

    served = {
        f"{method} {route.path}" for route in label_studio_routes(None).routes for method in route.methods
    }
    assert {row[0].strip("`") for row in table(GUIDE, "request")} == served - {"GET /versions"}
