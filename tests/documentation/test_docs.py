"""What the pages in docs/ show is executed, and what their tables state is compared with the code."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
import tomllib

import pytest

import sarb
from sarb.registry import find
from tests.documentation.tools import ROOT, blocks, commands, hurry, parse, run

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def table(page, head):
    """Rows (cells) of the table whose header starts with ``head``."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def stated(rows, name=0, default=1):
    return {row[name].strip("`"): ast.literal_eval(row[default].strip("`")) for row in rows}


def keywords(made):
    parameters = inspect.signature(made).parameters.values()
    return {entry.name: entry.default for entry in parameters if entry.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("method", sorted(sarb.METHODS))
def test_a_method_page_has_the_options_and_defaults_of_the_code(method):
    made = find("method", sarb.METHODS, method)
    assert stated(table(DOCS / "methods" / f"{method}.md", "option")) == keywords(made)


def test_settings_and_their_defaults():
    from sarb.settings import Settings

    plain = {field.name: field.default for field in dataclasses.fields(Settings)}
    expected = {name: value for name, value in plain.items() if value is not dataclasses.MISSING}
    assert stated(table(DOCS / "recipes.md", "setting")) == expected


def test_options_of_networks_and_backbones():
    from sarb.networks import create_backbone

    rows = table(DOCS / "recipes.md", "of")
    for network in sarb.NETWORKS:
        mine = [row for row in rows if row[0] == f"`{network}`"]
        assert stated(mine, 1, 2) == keywords(find("network", sarb.NETWORKS, network))
    shared = [row for row in rows if row[0] == "any backbone"]
    signature = inspect.signature(create_backbone).parameters
    expected = {name: signature[name].default for name in signature if name not in ("name", "options")}
    assert stated(shared, 1, 2) == expected


@pytest.mark.parametrize("family", sorted(sarb.BACKBONES.families))
def test_options_of_models_of_other_packages(family):
    rows = [row for row in table(DOCS / "backbones.md", "option") if f"`{family}:`" in row[1]]
    made = find("backbone", sarb.BACKBONES, f"{family}:any")
    assert stated(rows, 0, 2) == keywords(made.func)


def test_the_types_of_transformers_that_can_be_used_are_named():
    from sarb.networks.backbones.hf_cut import CUTS

    page = (DOCS / "backbones.md").read_text(encoding="utf-8")
    assert all(f"`{kind.removesuffix('_vision_model')}`" in page for kind in CUTS)


def test_commands_of_the_backbones_page_have_valid_options():
    found = [words for block in blocks(DOCS / "backbones.md") for words, _ in commands(block)]
    assert len([words for words in found if words[0] == "sarb" and parse(words)]) == 3


def test_recipes_are_all_listed():
    from sarb.settings import recipe_names

    assert sorted(row[0].strip("`") for row in table(DOCS / "recipes.md", "recipe")) == recipe_names()


def test_the_recipe_of_the_page_can_be_read(tmp_path):
    from sarb.settings import RECIPES, read_recipe, resolve

    shown, ties = (block for block in blocks(DOCS / "recipes.md") if block.language == "toml")
    file = tmp_path / "mine.toml"
    file.write_text(shown.text, encoding="utf-8")
    settings = resolve(file)
    assert (settings.epochs, settings.method_options, settings.lr_scale["blend"]) == (15, {"start": 3}, 0.1)
    assert resolve(file, network="pooled", method="partial_bce").epochs == 12
    sections = {name.rpartition(".")[0] or name for name in re.findall(r"^\[(.+)\]", shown.text, re.M)}
    assert sections == {*read_recipe(file)} == {"train", "backbone", "network", "method", "lr", "data"}
    (same,) = [block for block in blocks(DOCS / "methods" / "auto.md") if block.language == "toml"]
    assert tomllib.loads(same.text) == tomllib.loads(ties.text)
    file.write_text(f"{(RECIPES / 'auto.toml').read_text(encoding='utf-8')}\n{ties.text}", encoding="utf-8")
    assert resolve(file).method_options == {"ties": {"kite": [], "cloud": ["parachute"]}}


def test_commands_of_the_recipes_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    for block in blocks(DOCS / "recipes.md"):
        for words, _ in commands(block) if block.language == "console" else ():
            assert parse(words)
            if block.mark is None:
                assert run(words, monkeypatch) == 0, capsys.readouterr().err


def test_add_a_method(tmp_path, monkeypatch):
    import sarb.methods

    hurry(monkeypatch)
    source, line, use = [
        block.text for block in blocks(DOCS / "add-a-method.md") if block.language == "python"
    ]
    (tmp_path / "assume_negative.py").write_text(source, encoding="utf-8")
    rules = ["--config", str(ROOT / "pyproject.toml")]
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *rules, str(tmp_path)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    monkeypatch.setattr(sarb.methods, "__path__", [*sarb.methods.__path__, str(tmp_path)])
    for name, target in ast.literal_eval("{" + line + "}").items():
        monkeypatch.setitem(sarb.METHODS, name, target)
    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(use, "add-a-method.md", "exec"), {})
    finally:
        sys.modules.pop("sarb.methods.assume_negative", None)
    head, row = (tmp_path / "runs/assume/log.csv").read_text(encoding="utf-8").splitlines()
    logged = dict(zip(head.split(","), row.split(","), strict=True))
    assert float(logged["loss_assumed"]) > 0
    labels = sarb.LabelMatrix.load(tmp_path / "runs/assume/labels.npz")
    assert int(logged["completed_assumed"]) == (labels.values == 0).sum()


def test_plug_ins(tmp_path, monkeypatch):
    from sarb.networks import Network
    from sarb.registry import REGISTRIES

    hurry(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sarb.BACKBONES, "small", "")  # the page registers it; gone after the test
    shown = {block.language: block for block in blocks(DOCS / "plug-ins.md")}
    exec(compile(shown["python"].text, "plug-ins.md", "exec"), {"__name__": "page"})
    assert (tmp_path / "runs/small/model").is_dir()
    groups = tomllib.loads(shown["toml"].text)["project"]["entry-points"]
    assert groups.keys() <= {f"sarb.{kind}s" for kind in REGISTRIES}
    assert all(parse(words) for words, _ in commands(shown["console"]))
    assert {row[0].strip("`") for row in table(DOCS / "plug-ins.md", "kind")} == set(REGISTRIES)
    members = [row[0].strip("`").partition("(")[0] for row in table(DOCS / "plug-ins.md", "member")]
    assert [name for name in members if not hasattr(Network, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    places = [place for place in re.findall(r"\]\(([^)#]+)", text) if "://" not in place]
    assert [place for place in places if not (page.parent / place).exists()] == []


def test_files_named_by_the_architecture_exist():
    for row in table(DOCS / "architecture.md", "place"):
        folder = ""
        for name in re.findall(r"`([^`]+)`", row[0]):
            folder = name.rpartition("/")[0] if "/" in name else folder
            place = name if "/" in name or not folder else f"{folder}/{name}"
            assert [*(ROOT / "src/sarb").glob(place.rstrip("/"))], place
