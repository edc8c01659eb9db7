"""Which photos a review asks about, and in which file the answers go."""

import csv
import json

import numpy as np
import pytest

import sarb
from sarb.errors import SarbError
from sarb.runs.folder import RunFolder
from sarb.serve.questions import StaleError

OPTIONS = {"encoding": "binary"}  # a fifth of the photos is drawn for the test


@pytest.fixture
def splits(gaps):
    data = sarb.load(gaps / "labels.csv", **OPTIONS)
    return {name: set(part.labels.paths) for name, part in data.splits.items()}


def answer_all(desk, answer="yes"):
    asked = set()
    while questions := desk.next("ann", count=50):
        for question in questions:
            desk.answer("ann", question.id, answer)
            asked.add(question.file_name)
    desk.close()
    return asked


def values(path, split):
    return getattr(sarb.load(path, **OPTIONS), split).labels


def test_only_training_photos_are_asked(open_review, gaps, splits):
    assert len(splits["test"]) == 4
    desk = open_review(options=OPTIONS)
    assert desk.ask == "train" and desk.out.name == "reviewed.csv"
    name = min(splits["test"])
    test = next(filter(None, (desk.questions.entry_named(name, label) for label in desk.categories)))
    with pytest.raises(StaleError):
        desk.answer("ann", desk.questions[test].id, "yes")
    asked = answer_all(desk)
    assert asked and asked <= splits["train"]
    # the test is the same as before, label by label
    before, after = (values(gaps / name, "test") for name in ("labels.csv", "reviewed.csv"))
    assert before.paths == after.paths and np.array_equal(before.values, after.values)
    assert values(gaps / "reviewed.csv", "train").known.all()


def test_an_audit_has_its_own_file_and_journal(open_review, gaps, splits):
    answer_all(open_review(options=OPTIONS), "no")
    kept = {name: (gaps / name).read_bytes() for name in ("reviewed.csv", "reviewed.answers.jsonl")}
    desk = open_review(options=OPTIONS, ask="test")
    assert desk.out.name == "audited-test.csv"
    assert answer_all(desk) == splits["test"]
    assert {name: (gaps / name).read_bytes() for name in kept} == kept
    lines = map(json.loads, (gaps / "audited-test.answers.jsonl").read_text(encoding="utf-8").splitlines())
    facts = {(line["ask"], line["order"], line["assisted"]) for line in lines}
    assert facts == {("test", "random", False)}
    assert values(gaps / "audited-test.csv", "test").known.all()
    train = [values(gaps / name, "train").values for name in ("labels.csv", "audited-test.csv")]
    assert np.array_equal(*train)
    assert open_review(options=OPTIONS, ask="test").progress()["open"] == 0  # resumes


def test_the_order_of_an_audit_is_not_the_models(open_review):
    desk = open_review(options=OPTIONS, ask="test")
    entries = desk.questions.entries
    chances = desk.questions.probabilities.ravel()[entries]
    by_doubt = entries[np.argsort(np.abs(chances - 0.5), kind="stable")]
    assert len(entries) == 12 and not np.array_equal(entries, by_doubt)
    assert not np.array_equal(entries, np.sort(entries))
    assert all(question.reason == "" for question in desk.next("ann"))


def test_two_splits_never_share_a_journal(open_review, gaps):
    desk = open_review(options=OPTIONS, out=gaps / "mine.csv")
    desk.answer("ann", desk.next("ann")[0].id, "yes")
    desk.close()
    said = r"mine\.answers\.jsonl: holds answers about train photos.*those about test photos; choose another"
    with pytest.raises(SarbError, match=said):
        open_review(options=OPTIONS, out=gaps / "mine.csv", ask="test")


def test_answers_of_an_old_journal_about_test_photos_are_left_out(open_review, gaps, splits, capsys):
    desk = open_review()  # all photos, as before
    while questions := desk.next("ann", count=50):
        for question in questions:
            desk.answer("ann", question.id, "yes")
    desk.close()
    journal = gaps / "reviewed.answers.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        del line["ask"], line["order"], line["assisted"]
    old = "".join(json.dumps(line) + "\n" for line in lines)
    journal.write_text(old, encoding="utf-8")
    again = open_review(options=OPTIONS)
    said = capsys.readouterr().err
    assert "ignored 12 earlier answers about photos that are not training photos; they stay" in said
    assert again.progress()["yes"] == 48 and again.progress()["open"] == 0
    again.close()
    before, after = (values(gaps / name, "test").values for name in ("labels.csv", "reviewed.csv"))
    assert np.array_equal(before, after)
    assert journal.read_text(encoding="utf-8") == old


def test_nothing_to_ask_names_the_other_split(open_review, gaps):
    with (gaps / "labels.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    with (gaps / "halves.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([head[0], "split", *head[1:]])
        for number, row in enumerate(rows):
            known = [code or "0.0" for code in row[1:]]
            writer.writerow([row[0], *(("train", *known) if number < 10 else ("test", *row[1:]))])
    known = r"every label of the training photos is known.*--ask test for 30 of test photos"
    with pytest.raises(SarbError, match=known):
        open_review(labels=str(gaps / "halves.csv"), options=OPTIONS)
    with pytest.raises(SarbError, match=r"has no validation photos.*--ask test for 30"):
        open_review(labels=str(gaps / "halves.csv"), options=OPTIONS, ask="valid")
    with pytest.raises(SarbError, match=r"unknown split 'tset'\. Did you mean 'test'"):
        open_review(options=OPTIONS, ask="tset")


@pytest.fixture
def full(gaps):
    """The table of ``gaps`` without gaps."""
    with (gaps / "labels.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    with (gaps / "full.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *([row[0], *(code or "0.0" for code in row[1:])] for row in rows)])
    return str(gaps / "full.csv")


def run_of(tmp_path, labels, **record):
    folder = RunFolder(tmp_path / "its run")
    folder.path.mkdir()
    folder.write_config({"data": {"source": "full.csv", "options": {}, **record}})
    folder.write_train(labels)
    return folder.path


@pytest.mark.parametrize(
    ("record", "command"),
    [
        ({"known": 0.3, "mask_seed": 2}, "sarb data convert SRC --known 0.3 --mask-seed 2 --out gaps.csv"),
        ({"single_positive": True, "known": 1}, "sarb data convert SRC --single-positive --out gaps.csv"),
    ],
)
def test_a_run_that_hid_labels_says_how_to_get_a_table_with_gaps(
    open_review, full, tmp_path, record, command
):
    run = run_of(tmp_path, sarb.load(full, **OPTIONS).train.labels, **record)
    with pytest.raises(SarbError, match="nothing to review") as error:
        open_review(labels=full, options=OPTIONS, run=run)
    assert "This run hid labels with --" in str(error.value) and command in str(error.value)
    with pytest.raises(SarbError, match="nothing to review") as error:
        open_review(labels=full, options=OPTIONS)
    assert "hid labels" not in str(error.value)


def test_a_table_that_is_older_than_the_run_is_not_taken_without_a_word(
    open_review, full, gaps, tmp_path, capsys
):
    labels = sarb.load(full, **OPTIONS).train.labels
    open_review(options=OPTIONS, run=run_of(tmp_path, labels))
    said = capsys.readouterr().err
    known = int(sarb.load(gaps / "labels.csv", **OPTIONS).train.labels.known.sum())
    assert f"has {known:,} known labels of the run's training photos" in said
    assert f"trained on {labels.known.sum():,}" in said


def test_a_table_with_as_many_labels_gets_no_warning(open_review, gaps, tmp_path, capsys):
    open_review(options=OPTIONS, run=run_of(tmp_path, sarb.load(gaps / "labels.csv", **OPTIONS).train.labels))
    assert "older table" not in capsys.readouterr().err


def test_the_first_start_takes_the_features_that_training_has_stored(
    open_review, recogniser, gaps, monkeypatch
):
    from sarb.inference.prediction import predict
    from sarb.serve import opening

    photos = sarb.load(gaps / "labels.csv", **OPTIONS).train
    scores = predict(recogniser.model, photos, cache=True)
    files = photos.paths
    asked = []

    def watched(model, images, **options):
        asked.append((images, options.get("cache", False)))
        return predict(model, images, **options)

    monkeypatch.setattr(opening, "predict", watched)
    found, readable = opening._scored(recogniser, files, gaps / "a.csv", photos)
    assert asked == [(photos, True)] and readable.all()
    assert np.array_equal(found.logits, scores.logits)
    again, _ = opening._scored(recogniser, files, gaps / "a.csv", photos)
    assert asked[1:] == [([], False)] and np.array_equal(again.logits, found.logits)
