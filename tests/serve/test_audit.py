"""What evaluate says about labels that come from a review."""

import json

import pytest

import sarb
from sarb.serve.audit import audit_note
from sarb.serve.journal import journal_of
from tests.documentation.tools import run as command

OPTIONS = {"encoding": "binary"}


@pytest.fixture
def audited(open_review, gaps):
    """An audit of the test photos: six answers, of which two were helped by the model, and one taken back."""
    desk = open_review(options=OPTIONS, ask="test")
    for answer, assisted in (("yes", False), ("no", True), ("skip", True), ("no", False), ("yes", False)):
        desk.answer("ann", desk.next("ann")[0].id, answer, assisted=assisted)
    label = desk.next("ann")[0].label
    (likely,) = desk.next("bob", label, 1, "likely")
    desk.answer_page("bob", {likely.id: "yes"}, page="p", order="likely")
    (last,) = desk.next("ann", count=1)
    desk.answer("ann", last.id, "yes", assisted=True)
    desk.undo("ann")
    desk.close()
    return gaps / "audited-test.csv"


def test_the_answers_are_counted(audited):
    note = audit_note(sarb.load(audited, **OPTIONS).test)
    assert "answered in a review (audited-test.answers.jsonl): 5, of which 2 chosen by a model" in note
    assert audit_note(sarb.load(audited, **OPTIONS).train) == ""


def test_a_label_that_was_changed_since_is_not_counted(audited):
    data = sarb.load(audited, **OPTIONS).test
    assert audit_note(data.hide(0.0)) == ""


def test_an_audit_in_another_folder(open_review, tmp_path):
    desk = open_review(options=OPTIONS, ask="test", out=tmp_path / "away" / "mine.csv")
    desk.answer("ann", desk.next("ann")[0].id, "yes")
    desk.close()
    data = sarb.load(desk.out, **OPTIONS).test
    assert all(name.startswith("..") for name in data.labels.paths)
    assert "(mine.answers.jsonl): 1, of which 0 chosen" in audit_note(data)


def test_an_old_journal_says_nothing_about_help_so_all_were_helped(audited):
    journal = journal_of(audited)
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for key in ("ask", "order", "assisted"):
            line.pop(key, None)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert "5, of which 5 chosen" in audit_note(sarb.load(audited, **OPTIONS).test)


def test_evaluate_says_so(audited, gaps, run, monkeypatch, capsys):
    line = ["sarb", "evaluate", str(run), "-o", "encoding=binary", "--data"]
    assert command([*line, str(audited), "--split", "test"], monkeypatch) == 0
    said = capsys.readouterr().err
    assert said.count("answered in a review") == 1 and "5, of which 2 chosen" in said
    assert command([*line, str(gaps / "labels.csv")], monkeypatch) == 0
    assert "review" not in capsys.readouterr().err
