"""The benchmark of the audit on a few squares: what is planted is where the truth says, and is counted right."""

import csv

import numpy as np
import pytest
from benchmarks.audit import line, read_natural, table, unexplained
from benchmarks.faults import KINDS, Fault, plant
from PIL import Image

from sarb.health.findings import Audit
from tests.health.images import images


@pytest.fixture
def planted(squares, tmp_path):
    return plant(squares / "labels.csv", squares, tmp_path, count=3, seed=1), tmp_path


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return {row["file_name"]: row for row in csv.DictReader(file)}


def test_plant(planted, squares):
    faults, folder = planted
    assert [fault.kind for fault in faults] == [kind for kind in KINDS for _ in range(3)]
    assert len({fault.original or fault.file_name for fault in faults}) == len(faults)
    before = rows(squares / "labels.csv")
    after = rows(folder / "labels.csv")
    assert len(after) == len(before) + 5 * 3 and all((folder / name).is_file() for name in after)
    for fault in faults:
        if fault.kind == "label":
            assert before[fault.file_name][fault.label] != after[fault.file_name][fault.label]
        if fault.kind == "exact":
            assert (folder / fault.file_name).read_bytes() == (squares / fault.original).read_bytes()
        if fault.kind == "mirrored":
            one, two = (
                np.asarray(Image.open(path), int)
                for path in (folder / fault.file_name, squares / fault.original)
            )
            assert np.abs(one[:, ::-1] - two).mean() < np.abs(one - two).mean() / 2
        if fault.kind == "dark":
            assert (
                np.asarray(Image.open(folder / fault.file_name)).mean()
                < 0.3 * np.asarray(Image.open(squares / fault.file_name)).mean()
            )


def test_halves_share_no_photo(squares, tmp_path):
    halves = []
    for half in (0, 1):
        plant(squares / "labels.csv", squares, tmp_path / str(half), count=1, seed=half, half=half)
        halves.append({name for name in rows(tmp_path / str(half) / "labels.csv") if "copy" not in name})
    assert not halves[0] & halves[1] and halves[0] | halves[1] == {*rows(squares / "labels.csv")}


def items(*names):
    return [frozenset(name.split()) for name in names]


def test_line_by_hand():
    found = line("dark", items("a", "b", "c", "d"), items("a", "b", "x", "n"), items("n"), [])
    assert (found["found"], found["recall"], found["listed"]) == (2, 50.0, 4)
    assert (found["natural"], found["false"], found["precision"]) == (1, 1, 66.7)


def test_natural_faults_are_neither_planted_nor_false(tmp_path):
    data = images(["train"] * 4)
    findings = [
        data.pair("near_duplicate", 0, 1, 0.9, ""),
        data.pair("near_duplicate", 2, 3, 0.8, ""),
        data.finding("dark", 3, 0.9, ""),
    ]
    faults = [Fault("mirrored", "1.jpg", "0.jpg")]
    faults += [Fault(kind, f"{kind}.jpg") for kind in KINDS if kind != "mirrored"]
    (tmp_path / "natural.csv").write_text(
        "kind,file_name,other_file,label,verdict\nnear_duplicate,3.jpg,2.jpg,,right\ndark,3.jpg,,,wrong\n",
        encoding="utf-8",
    )
    natural = read_natural(tmp_path / "natural.csv")
    counted = {row["kind"]: row for row in table(Audit("x", data, findings), faults, natural)}
    assert (counted["mirrored"]["found"], counted["mirrored"]["false"], counted["mirrored"]["natural"]) == (
        1,
        0,
        1,
    )
    assert (counted["dark"]["found"], counted["dark"]["false"]) == (0, 1)
    left = unexplained(Audit("x", data, findings), faults, natural)
    assert [(item["kind"], item["file_name"]) for item in left] == [("dark", "3.jpg")]
