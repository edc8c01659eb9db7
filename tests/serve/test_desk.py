"""The review desk: durable, shared, undoable, resumable."""

import asyncio
import json
import threading
from collections import Counter

import numpy as np
import pytest

import sarb
from sarb.data.images import decode
from sarb.errors import SarbError
from sarb.serve import leases
from sarb.serve.answers import ANSWERS
from sarb.serve.journal import journal_of, read_journal
from sarb.serve.pictures import Pictures
from sarb.serve.questions import StaleError


def stored(desk):
    """(file, label) -> value of what sarb.load reads from the CSV, with the options of the source."""
    desk.saver.save()
    return table(desk.out)


def table(path):
    data = sarb.load(path, encoding="binary")
    return {
        (name, category): int(part.labels.values[row, column])
        for part in data.splits.values()
        for row, name in enumerate(part.labels.paths)
        for column, category in enumerate(part.categories)
    }


def test_answers_stand_in_the_table_and_nothing_else_changes(open_review, gaps):
    before = (gaps / "labels.csv").read_bytes()
    desk = open_review()
    assert desk.out == gaps / "reviewed.csv"
    expected = table(gaps / "labels.csv")
    for answer in ("yes", "no", "skip", "yes"):
        (question,) = desk.next("ann", count=1)
        assert expected[question.file_name, question.label] == 0
        desk.answer("ann", question.id, answer)
        expected[question.file_name, question.label] = ANSWERS[answer]
    assert stored(desk) == expected
    assert (gaps / "labels.csv").read_bytes() == before
    counts = desk.progress("ann")
    assert [counts[key] for key in ("yes", "no", "skip", "open", "questions")] == [2, 1, 1, 56, 60]


def test_the_users_encoding_spelling_order_and_splits(open_review, gaps):
    desk = open_review()
    (question,) = desk.next("ann", count=1)
    desk.answer("ann", question.id, "yes")
    desk.saver.save()
    own, new = (
        (gaps / name).read_text(encoding="utf-8").splitlines() for name in ("labels.csv", "reviewed.csv")
    )
    changed = [(a, b) for a, b in zip(own, new, strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0][1].count("1.0") == changed[0][0].count("1.0") + 1
    first, second = (sarb.load(gaps / name, encoding="binary") for name in ("labels.csv", "reviewed.csv"))
    assert (
        first.train.labels.paths == second.train.labels.paths
        and first.test.labels.paths == second.test.labels.paths
    )


def test_the_most_valuable_first_and_by_category(open_review):
    desk = open_review()
    questions = desk.next("ann", count=5)
    assert [q.image * 5 + q.category for q in questions] == desk.questions.entries[:5].tolist()
    assert all(question.reason for question in questions)
    blue = desk.next("ann", "blue", count=50)
    assert {question.label for question in blue} == {"blue"} and len(blue) == 12
    assert desk.progress("ann", "blue")["questions"] == 12
    assert [entry["questions"] for entry in desk.open_by_category()] == [12] * 5
    with pytest.raises(SarbError, match="Did you mean 'blue'"):
        desk.next("ann", "bleu")


def test_two_people_get_different_questions(open_review):
    desk = open_review()
    ann = desk.next("ann", count=4)
    bob = desk.next("bob", count=4)
    assert not {q.id for q in ann} & {q.id for q in bob}
    assert desk.next("ann", count=4) == ann  # a reload shows the same again
    desk.answer("ann", ann[0].id, "no")
    assert desk.next("ann", count=4)[:3] == ann[1:]


def test_the_questions_of_somebody_silent_come_back(open_review, monkeypatch):
    desk = open_review()
    now = [0.0]
    desk._handout.leases = leases.Leases(lambda: now[0])
    ann = desk.next("ann", count=4)
    now[0] = leases.LEASE - 1
    assert not {q.id for q in desk.next("bob", count=60)} & {q.id for q in ann}
    now[0] = leases.LEASE + 1
    assert {q.id for q in ann} <= {q.id for q in desk.next("bob", count=60)}


def test_the_last_answer_counts_and_the_journal_has_both(open_review):
    desk = open_review()
    (question,) = desk.next("ann", count=1)
    desk.answer("ann", question.id, "yes")
    desk.answer("bob", question.id, "no")
    assert stored(desk)[question.file_name, question.label] == -1
    lines = [json.loads(line) for line in desk._journal.path.read_text(encoding="utf-8").splitlines()]
    assert [(line["who"], line["answer"]) for line in lines] == [("ann", "yes"), ("bob", "no")]
    assert desk.progress()["no"] == 1 and desk.progress()["yes"] == 0
    assert desk.undo("ann") == []  # it is Bob's now
    assert desk.undo("bob") != []
    assert stored(desk)[question.file_name, question.label] == 1  # what Ann said
    assert desk.undo("ann") == [question]


def test_the_same_answer_twice_is_one(open_review):
    desk = open_review()
    (question,) = desk.next("ann", count=1)
    for _ in range(3):
        desk.answer("ann", question.id, "yes")
    assert len(desk._journal.path.read_text(encoding="utf-8").splitlines()) == 1
    assert desk.undo("ann") != [] and desk.undo("ann") == []


def test_undo_is_ones_own_in_reverse_order(open_review):
    desk = open_review()
    given = []
    for who in ("ann", "bob", "ann"):
        (question,) = desk.next(who, count=1)
        desk.answer(who, question.id, "yes")
        given.append(question)
    assert desk.progress("ann")["undo"] == given[2].id
    assert desk.undo("ann", given[2].id) == [given[2]]
    assert desk.undo("ann", given[2].id) == []  # sent twice
    assert desk.next("ann", count=2)[0] == given[2]  # asked again, at once
    assert desk.undo("ann") == [given[0]]
    assert desk.undo("ann") == []
    assert desk.undo("bob") == [given[1]]
    assert desk.progress("bob")["open"] == 60 and desk.progress("bob")["undo"] is None


def test_skipped_ones_wait_until_they_are_wanted(open_review):
    desk = open_review()
    for _ in range(60):
        (question,) = desk.next("ann", count=1)
        desk.answer("ann", question.id, "skip")
    assert desk.next("ann") == [] and desk.progress()["skip"] == 60
    assert desk.reopen("ann", "red") == 12
    assert desk.reopen("ann") == 48
    assert desk.progress()["open"] == 60 and desk.undo("ann") == []
    assert len(desk.next("ann")) == 1 and len(desk.next("ann", count=4)) == 4


def test_it_goes_on_where_it_was_left(open_review, gaps):
    desk = open_review()
    asked = desk.next("ann", count=6)
    for question, answer in zip(asked, ("yes", "no", "skip", "yes", "no"), strict=False):
        desk.answer("ann", question.id, answer)
    desk.undo("ann")
    before = stored(desk)
    counts = desk.progress("ann")
    desk.close()
    again = open_review()
    assert stored(again) == before
    assert again.progress("ann") == counts
    assert again.next("ann", count=2) == asked[4:6]
    assert again.undo("ann") == [asked[3]]  # also what was answered before the restart
    again.answer("ann", asked[5].id, "yes")  # handed out before the restart


def test_known_labels_are_never_changed(open_review, gaps):
    desk = open_review()
    (question,) = desk.next("ann", count=1)
    desk.answer("ann", question.id, "yes")
    desk.close()
    lines = (gaps / "reviewed.csv").read_text(encoding="utf-8").replace("1.0", "0.0")
    (gaps / "labels.csv").write_text(lines, encoding="utf-8")  # the user says otherwise now
    (gaps / "reviewed.csv").unlink()
    again = open_review()
    assert again.resumed.ignored == 1
    assert stored(again)[question.file_name, question.label] == -1
    with pytest.raises(StaleError, match="reload the page"):
        again.answer("ann", question.id, "yes")


@pytest.mark.parametrize(
    "ident",
    ["", "0-0", "0-0-0123456789", "999-0-0123456789", "-1-0-x", "0-99-x", "²-0-x", "../../etc/passwd"],
)
def test_a_question_that_is_none(open_review, ident):
    with pytest.raises(StaleError):
        open_review().answer("ann", ident, "yes")


def test_an_answer_that_is_none(open_review):
    desk = open_review()
    with pytest.raises(SarbError, match=r"unknown answer 'yess'\. Did you mean 'yes'"):
        desk.answer("ann", desk.next("ann")[0].id, "yess")


def test_files_of_others_are_not_replaced(open_review, gaps, tmp_path):
    (tmp_path / "mine.csv").write_text("file_name,red\n", encoding="utf-8")
    with pytest.raises(SarbError, match="not written by a review"):
        open_review(out=tmp_path / "mine.csv")
    with pytest.raises(SarbError, match=r"labels\.csv: exists already"):
        open_review(out=gaps / "labels.csv")
    (gaps / "labels.answers.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(SarbError, match="the source itself"):
        open_review(out=gaps / "labels.csv")
    with pytest.raises(SarbError, match=r"x\.txt: expected a file that ends in \.csv"):
        open_review(out=tmp_path / "x.txt")


def test_answers_given_as_labels(open_review, gaps):
    desk = open_review()
    desk.answer("ann", desk.next("ann")[0].id, "yes")
    desk.close()
    with pytest.raises(SarbError, match=r"reviewed\.csv: this is the source itself.*your answers are kept"):
        open_review(labels=str(gaps / "reviewed.csv"))
    assert open_review().progress()["yes"] == 1


def test_a_review_that_somebody_has_edited_is_not_replaced(open_review, gaps):
    desk = open_review()
    (question,) = desk.next("ann", count=1)
    desk.answer("ann", question.id, "yes")
    desk.undo("ann")
    desk.answer("ann", question.id, "no")
    desk.close()
    open_review().close()
    path = gaps / "reviewed.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(",,", ",1.0,", 1), encoding="utf-8")
    with pytest.raises(SarbError, match=r"1 of its labels come neither .* move it away"):
        open_review()
    path.write_text(text.replace("red", "crimson"), encoding="utf-8")
    with pytest.raises(SarbError, match="its images or categories differ"):
        open_review()


def test_nothing_to_ask(open_review, squares):
    with pytest.raises(
        SarbError, match="every label of the training photos is known, so there is nothing to review"
    ):
        open_review(labels=str(squares / "labels.csv"))


def test_an_answer_that_cannot_be_saved_is_not_taken(open_review, monkeypatch):
    desk = open_review()
    (question,) = desk.next("ann", count=1)

    def full(entries):
        raise SarbError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(desk._journal, "append", full)
        with pytest.raises(SarbError, match="no space"):
            desk.answer("ann", question.id, "yes")
    assert desk.progress()["yes"] == 0 and desk.next("ann", count=1) == [question]


def test_eight_people_at_once_lose_no_answer(open_review):
    desk = open_review()
    said = {}
    lock = threading.Lock()

    def work(who):
        random = np.random.RandomState(len(who))
        while questions := desk.next(who, count=2):
            for question in questions:
                answer = ("yes", "no", "skip")[random.randint(3)]
                desk.answer(who, question.id, answer)
                with lock:
                    said.setdefault((question.file_name, question.label), []).append(answer)

    threads = [threading.Thread(target=work, args=("w" * (n + 1),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 60 and Counter(map(len, said.values())) == {1: 60}
    result = stored(desk)
    assert {asked: ANSWERS[answers[0]] for asked, answers in said.items()} == {
        asked: result[asked] for asked in said
    }
    assert desk.progress()["open"] == 0


def test_categories_in_another_order_than_the_models(open_review, gaps, recogniser):
    import csv

    with (gaps / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = [[row[0], *reversed(row[1:])] for row in csv.reader(file)]
    with (gaps / "turned.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    desk = open_review(labels=str(gaps / "turned.csv"), out=gaps / "other.csv")
    question = desk.next("ann", count=1)[0]
    assert desk.categories == tuple(reversed(recogniser.categories))
    scores = recogniser.model.predict([gaps / question.file_name])
    expected = scores.probabilities[0, recogniser.categories.index(question.label)]
    assert question.probability == pytest.approx(expected, abs=1e-5)
    own = recogniser.look(decode(gaps / question.file_name))
    shown = asyncio.run(Pictures(desk.table.files, recogniser, desk.categories).seen(question.image))
    column = recogniser.categories.index(question.label)
    assert np.array_equal(shown.heat[question.category], own.heat[column])
    assert len({heat.tobytes() for heat in own.heat}) == 5
    assert shown.probabilities[question.category] == pytest.approx(expected, abs=1e-5)


def test_an_image_that_cannot_be_read_is_not_asked(open_review, gaps, capsys):
    (gaps / "03.jpg").write_bytes(b"no picture")
    desk = open_review()
    assert "skipped" in capsys.readouterr().err
    assert "03.jpg" not in {q.file_name for q in desk.next("ann", count=50)}
    assert desk.progress()["questions"] == 57


def test_a_review_without_answers_leaves_no_files(open_review, gaps, run):
    before = {path.name for path in gaps.iterdir()}
    first = open_review(run=run)
    assert first.out.exists()
    first.close()
    assert {path.name for path in gaps.iterdir()} == before
    desk = open_review(run=run)
    desk.answer("ann", desk.next("ann")[0].id, "skip")
    desk.close()
    assert {path.name for path in gaps.iterdir()} - before == {"reviewed.csv", "reviewed.answers.jsonl"}
    (record,) = read_journal(journal_of(desk.out))
    assert record["run"] == str(run.resolve())
    first.close()  # once more, which must not touch the files of the second
    open_review().close()  # nothing new, but there are answers from before
    assert desk.out.exists()
