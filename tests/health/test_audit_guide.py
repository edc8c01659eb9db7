"""The page about the audit: every block runs, every kind is explained."""

from sarb.health.findings import COLUMNS, KINDS
from tests.documentation.test_docs import table
from tests.documentation.tools import ROOT, blocks, commands, hurry, run

PAGE = ROOT / "docs/audit.md"


def test_every_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    names = {}
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, "audit.md", "exec"), names)
        for words, _ in commands(block) if block.language == "console" else ():
            assert run(words, monkeypatch) == 0, (words, capsys.readouterr().err)
    assert (tmp_path / "audit/audit.html").is_file()
    assert (tmp_path / "to-fix.csv").read_text() == (tmp_path / "audit/audit.csv").read_text()


def test_every_kind_and_column_is_explained():
    assert [row[0].strip("`") for row in table(PAGE, "kind")] == list(KINDS)
    assert f"`{','.join(COLUMNS)}`" in PAGE.read_text(encoding="utf-8")
