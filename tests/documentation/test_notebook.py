"""The notebook is executed cell by cell, is stored clean, and its links lead somewhere."""

import ast
import json
import re

from PIL import Image

from tests.documentation.tools import ROOT, coarse_pictures

FILE = ROOT / "examples" / "walk.ipynb"
NOTEBOOK = json.loads(FILE.read_text(encoding="utf-8"))
#: fields of a cell in nbformat 4.5, no more and no less
FIELDS = {
    "markdown": {"cell_type", "id", "metadata", "source"},
    "code": {"cell_type", "id", "metadata", "source", "execution_count", "outputs"},
}


def cells(kind):
    return [(cell["id"], "".join(cell["source"])) for cell in NOTEBOOK["cells"] if cell["cell_type"] == kind]


def shown(text, name, names):
    """Execute a cell; return the value of its last expression, which Jupyter would show."""
    tree, last = ast.parse(text), None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, name, "exec"), names)
    return None if last is None else eval(compile(last, name, "eval"), names)


def test_cell_after_cell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    coarse_pictures(monkeypatch)
    names = {"__name__": "__main__"}
    values = {name: shown(text, f"walk.ipynb, cell {name}", names) for name, text in cells("code")}
    pictures = {name for name, value in values.items() if isinstance(value, Image.Image)}
    assert pictures == {"data", "labels", "measuring", "reasons", "trust", "asking"}
    assert all(values[name].convert("RGB").getcolors(1) is None for name in pictures), (
        "a picture is of one colour"
    )
    assert [place.name for place in tmp_path.iterdir()] == ["runs"]
    said = capsys.readouterr().out
    assert all(
        word in said for word in ("% known", "mAP", "Brier score: before", "given and kept", "known positive")
    )
    given, filled = names["train"].labels, names["filled"].labels
    assert (filled.values == given.values)[given.known].all() and filled.known.sum() > given.known.sum()
    assert not set(names["held"].labels.paths) & set(names["learn"].labels.paths)


def test_it_is_stored_clean():
    assert NOTEBOOK.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert NOTEBOOK["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in NOTEBOOK["cells"]:
        assert cell.keys() == FIELDS[cell["cell_type"]]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"]) and cell["metadata"] == {}
        assert cell["source"] and "".join(cell["source"]).splitlines(keepends=True) == cell["source"]
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(ids) == len(set(ids))
    # as Jupyter writes it, so that opening and saving it makes no difference
    assert FILE.read_text(encoding="utf-8") == json.dumps(NOTEBOOK, indent=1, ensure_ascii=False) + "\n"


def test_links_lead_somewhere():
    places = [place for _, text in cells("markdown") for place in re.findall(r"\]\(([^)#]+)", text)]
    assert len(places) > 5
    assert [place for place in places if not (FILE.parent / place).exists()] == []


def test_the_real_settings_are_code_too():
    (line,) = [line for _, text in cells("code") for line in re.findall(r"^# (sizes, .+)$", text, re.M)]
    names = {}
    exec(line, names)
    assert names["sizes"] == names["settings"] == {} and names["run"] != "runs/walk"
