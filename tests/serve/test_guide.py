"""docs/serve.md agrees with the code."""

import re

from sarb.serve.app import STATIC, create_app
from tests.documentation.tools import ROOT, blocks, commands, parse

PAGE = ROOT / "docs" / "serve.md"


def test_its_commands_exist():
    shown = [words for block in blocks(PAGE) if block.language == "console" for words, _ in commands(block)]
    assert [words[1] for words in shown] == ["serve", "serve", "serve", "evaluate", "train", "serve"]
    assert all(parse(words) for words in shown)


def test_its_requests_are_those_of_the_api(run, recogniser, open_review):
    described = create_app(run, recogniser, open_review()).openapi()["paths"]
    real = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    assert set(re.findall(r"^\| `((?:GET|POST) [^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.M)) == real


def test_its_keys_of_the_wall_are_those_of_the_page():
    script = (STATIC / "wall.js").read_text(encoding="utf-8")
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    keys = dict(re.findall(r'(\w): "([\w-]+)"', re.search(r"const KEYS = \{(.*?)\}", script)[1]))
    wall = PAGE.read_text(encoding="utf-8").split("### The wall")[1].split("###")[0]
    assert set(re.findall(r"^\| `(\w)` \|", wall, re.M)) == {key.upper() for key in keys}
    assert all(f'id="{button}"' in page for button in keys.values())


def test_its_keys_are_those_of_the_page():
    script = (STATIC / "review.js").read_text(encoding="utf-8")
    arrows = {"→": "ArrowRight", "←": "ArrowLeft", "↓": "ArrowDown", "↑": "ArrowUp"}
    words = {"yes": "yes", "no": "no", "skip": "skip", "take": "undo"}
    rows = re.findall(r"^\| `(\w)` or (.) \| (\w+)", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 4
    for key, arrow, meaning in rows:
        assert (
            f'{key.lower()}: "{words[meaning]}"' in script
            and f'{arrows[arrow]}: "{words[meaning]}"' in script
        )
