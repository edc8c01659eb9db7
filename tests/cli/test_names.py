"""Names are somebody else's text: they command neither the terminal nor a spreadsheet."""

import sys

import pytest
from typer.testing import CliRunner

import sarb
from sarb.cli.app import app, main
from sarb.errors import DataError, printable
from tests.data.fixtures import write_image

CLEAR = "\x1b[2J\x1b]0;owned\x07"


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def write(folder, names, categories):
    for number, name in enumerate(names):
        write_image(folder / name, number, (8, 8))
    rows = [f"{name},1,-1\n" if number % 2 else f"{name},-1,1\n" for number, name in enumerate(names)]
    (folder / "labels.csv").write_text(f"file_name,{','.join(categories)}\n{''.join(rows)}")
    return folder / "labels.csv"


def test_the_output_of_a_command_has_no_control_characters(tmp_path):
    table = write(tmp_path, [f"a{CLEAR}.jpg", "b.jpg", "c.jpg", "d.jpg"], [f"cat{CLEAR}", "dog"])
    for words in (["check", table], ["stats", table], ["check", table, "--json"]):
        done = run("data", *words, "-o", "encoding=signed")
        assert "\x1b" not in done.output and "\x07" not in done.output, words
        assert "\\u001b" in done.output or "\ufffd" in done.output, words


def test_neither_has_an_error(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["sarb", "data", "stats", f"no{CLEAR}where.csv"])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capfd.readouterr()
    assert stop.value.code == 2 and "\x1b" not in said.err + said.out and "\\u001b" in said.err


def test_names_that_no_terminal_can_show_are_shown_as_escapes():
    assert printable("a\udc80b\u202ec") == "a\\udc80b\\u202ec"
    assert printable("Zürich\t日本\n") == "Zürich\t日本\n"


@pytest.fixture
def formulas(tmp_path):
    folder = tmp_path / "source"
    return write(folder, ["=1+1.jpg", "@b.jpg", "-c.jpg", "d.jpg"], ["=cat", "-1"])


def test_convert_keeps_names_unless_excel_safe_is_asked_for(formulas, tmp_path):
    out = tmp_path / "plain.csv"
    assert run("data", "convert", formulas, "-o", "encoding=signed", "--out", out).exit_code == 0
    assert out.read_text().startswith("file_name,=cat,-1\n=1+1.jpg,-1,1\n")


@pytest.mark.parametrize("name", ["safe.csv", "safe.tsv"])
def test_excel_safe_guards_names_never_codes_and_can_be_read_back(formulas, tmp_path, name):
    out = tmp_path / "elsewhere" / name
    done = run("data", "convert", formulas, "-o", "encoding=signed", "--out", out, "--excel-safe")
    assert done.exit_code == 0 and "-o excel_safe=true" in done.output
    mark = "," if name.endswith("csv") else "\t"
    lines = [line.split(mark) for line in out.read_text().splitlines()]
    assert lines[0] == ["file_name", "'=cat", "-1"] and lines[1] == ["'=1+1.jpg", "-1", "1"]
    assert [line[0] for line in lines[2:]] == ["'@b.jpg", "'-c.jpg", "d.jpg"]
    before = sarb.load(formulas, encoding="signed").all
    after = sarb.load(out, encoding="signed", root=str(formulas.parent), excel_safe="true").all
    assert after.labels == before.labels


def test_without_the_option_the_reader_says_what_to_do(formulas, tmp_path):
    out = formulas.parent / "safe.csv"
    run("data", "convert", formulas, "-o", "encoding=signed", "--out", out, "--excel-safe")
    with pytest.raises(DataError, match="excel_safe"):
        sarb.load(out, encoding="signed")


def test_excel_safe_is_refused_where_it_cannot_apply(formulas, tmp_path):
    done = run(
        "data", "convert", formulas, "-o", "encoding=signed", "--out", tmp_path / "x.parquet", "--excel-safe"
    )
    assert done.exit_code != 0 and "excel_safe" in str(done.exception).replace("-", "_")
    done = run("complete", "runs/none", "--out", tmp_path / "x.csv", "--to", "wide", "--excel-safe")
    assert done.exit_code != 0 and "--excel-safe" in str(done.exception)
    # the flag ends with its command
    run("data", "convert", formulas, "-o", "encoding=signed", "--out", tmp_path / "plain.csv")
    assert "'" not in (tmp_path / "plain.csv").read_text()
