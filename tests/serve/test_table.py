"""Whatever the labels come from, the review is a table that is read again and taken up again."""

import csv

import numpy as np
import pytest

import sarb
from sarb.errors import DataError
from sarb.serve.table import Table

KINDS = {
    "words": ("labels.csv", {}, {"1.0": "yes", "0.0": "no", "": "?"}),
    "signed": ("labels.csv", {"encoding": "signed"}, {"1.0": "1", "0.0": "-1", "": "0"}),
    "minus_one": ("labels.tsv", {"encoding": "minus_one_unknown"}, {"1.0": "1", "0.0": "0", "": "-1"}),
}


def rewritten(folder, name, codes):
    """The labels in other codes, with a column of splits."""
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    (folder / "labels.csv").unlink()
    with (folder / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",")
        writer.writerow([head[0], "split", *head[1:]])
        for number, row in enumerate(rows):
            writer.writerow(
                [row[0], ("train", "valid", "test")[number % 3], *(codes[code] for code in row[1:])]
            )
    return folder / name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("away", [False, True])
def test_own_encoding_and_splits(open_review, gaps, tmp_path, kind, away):
    name, options, codes = KINDS[kind]
    source = rewritten(gaps, name, codes)
    out = tmp_path / "elsewhere" / "mine.csv" if away else None
    desk = open_review(labels=str(source), options=options, out=out)
    for answer in ("yes", "no", "skip"):
        (question,) = desk.next("ann", count=1)
        desk.answer("ann", question.id, answer)
    desk.close()
    assert desk.reading == (str(desk.out), options, "")
    before = sarb.load(source, **options)
    after = sarb.load(desk.out, **options)
    changed = 0
    for split, part in before.splits.items():
        assert [path.resolve() for path in after.splits[split].paths] == part.paths
        different = after.splits[split].labels.values != part.labels.values
        assert (part.labels.values[different] == 0).all()
        changed += different.sum()
    assert changed == 2
    text = desk.out.read_text(encoding="utf-8")
    assert desk.out.suffix == ".csv" if away else desk.out.name == f"reviewed{source.suffix}"
    assert all(f"{',' if desk.out.suffix == '.csv' else chr(9)}{code}" in text for code in codes.values())
    again = open_review(labels=str(source), options=options, out=out)
    assert again.progress()["open"] == 18  # of the 21 of training photos
    again.close()


def test_a_list_of_labels(open_review, gaps):
    with (gaps / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [f"{row['file_name']},{' '.join(name for name in row if row[name] == '1.0')}" for row in rows]
    (gaps / "list.csv").write_text("\n".join(["fname,labels", *lines, ""]), encoding="utf-8")
    source = f"list:{gaps / 'list.csv'}"
    options = {"unlisted": "unknown", "label_delimiter": "space"}
    (gaps / "list.categories.txt").write_text("red\ngreen\nblue\nyellow\nwhite\n", encoding="utf-8")
    desk = open_review(labels=source, options=options)
    question = desk.next("ann", count=1)[0]
    desk.answer("ann", question.id, "no")
    desk.close()
    assert desk.out.read_text(encoding="utf-8").startswith("fname,labels,absent_labels\n")
    written = sarb.load(f"list:{desk.out}", **options)
    labels = np.concatenate([part.labels.values for part in written.splits.values()])
    assert (labels == -1).sum() == 1
    again = open_review(labels=source, options=options)
    assert again.progress()["no"] == 1


def test_an_image_twice_has_no_place_for_an_answer(squares_data):
    from dataclasses import replace

    twice = replace(squares_data, test=squares_data.train)
    with pytest.raises(DataError, match="more than once"):
        Table(twice)
