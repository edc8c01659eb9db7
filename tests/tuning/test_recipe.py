"""Settings as a recipe: read again, they are the same."""

import tomllib

from sarb.rows import ROWS
from sarb.settings import resolve
from sarb.tuning.recipe import recipe_text, toml
from sarb.workflows.training import merge_options


def test_every_row_comes_back_from_its_recipe(tmp_path):
    file = tmp_path / "best.toml"
    for row in ROWS:
        options, _, _ = merge_options(row, ["lr.graph=0.25"], {"seed": 3, "lr": 1.25e-05})
        settings = resolve(None, **options)
        file.write_text(recipe_text(settings, {}, "head\n\n  command"), encoding="utf-8")
        assert resolve(file) == settings, row


def test_values_and_names_survive():
    value = {
        "a b": [1, 2.5, True, 'é"\\\n\x7f'],
        "ties": {"kite": [], "cloud": ["parachute"]},
        "tiny": 1e-300,
    }
    assert tomllib.loads(f"value = {toml(value)}")["value"] == value


def test_options_of_the_data_are_kept(tmp_path):
    text = recipe_text(resolve("auto"), {"encoding": "binary"}, "head")
    assert tomllib.loads(text)["data"] == {"encoding": "binary"} and text.startswith("# head\n\n[train]\n")
