import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from sarb.data import load
from sarb.data.assemble import divide
from sarb.data.check.problems import DataWarning
from sarb.data.dataset import Data, Dataset
from sarb.data.writers.formats import joined, quoted, typed
from sarb.data.writers.write import SIDES, WRITERS, convert, reader_of, target, write
from sarb.errors import ConfigError, DataError
from sarb.labels import LabelMatrix
from tests.data.fixtures import write_coco, write_wide_csv

VALUES = [[1, -1, 0], [0, 1, -1], [-1, 0, 1]]
NAMES = ["b.jpg", "a.jpg", "c,d.jpg"]


def make(
    values=VALUES,
    categories=("cat", "hot dog", "tree"),
    names=NAMES,
    splits=("train", "test", "train"),
    **notes,
):
    lines = np.arange(len(names)) + 2
    whole = Dataset(
        LabelMatrix(np.array(values, np.int8), categories, names), Path("pictures"), "data", lines
    )
    return divide(whole, list(splits), {"encoding": "binary", **notes})


def test_csv(tmp_path):
    options = write(make(), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        'file_name,split,cat,hot dog,tree\nb.jpg,train,1,0,\na.jpg,test,,1,0\n"c,d.jpg",train,0,,1\n'
    )
    assert options == {"encoding": "binary", "root": "pictures"}


def test_tsv_jsonl_and_folder(tmp_path):
    codes = {"present": "yes", "absent": "no", "unknown": "?"}
    data = make(encoding="words", codes=codes, splits=["train"] * 3)
    assert write(data, tmp_path / "out.tsv")["test"] == 0
    assert (tmp_path / "out.tsv").read_text().splitlines()[:2] == [
        "file_name\tcat\thot dog\ttree",
        "b.jpg\tyes\tno\t?",
    ]
    write(make(), tmp_path / "out.jsonl", encoding="binary")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert lines[0] == '{"file_name": "b.jpg", "split": "train", "cat": 1, "hot dog": 0, "tree": null}'
    assert json.loads(lines[2])["file_name"] == "c,d.jpg"
    for name in ("metadata.csv", "metadata.jsonl", "metadata.parquet"):
        assert write(make(), tmp_path / name, "folder") == {"encoding": "binary", "root": "pictures"}
    (tmp_path / "beside").mkdir()
    assert write(make(), tmp_path / "beside")["encoding"] == "binary"
    assert (tmp_path / "beside" / "metadata.csv").is_file()


@pytest.mark.parametrize(
    ("notes", "kind", "column"),
    [
        ({"encoding": "binary"}, arrow.int8(), [1, None, 0]),
        ({"encoding": "signed"}, arrow.int8(), [1, 0, -1]),
        ({"codes": {"present": "1.0", "absent": "0.0", "unknown": ""}}, arrow.float32(), [1.0, None, 0.0]),
        ({"encoding": "words"}, arrow.string(), ["present", "unknown", "absent"]),
        (
            {"encoding": "words", "codes": {"present": "True", "absent": "False", "unknown": ""}},
            arrow.bool_(),
            [True, None, False],
        ),
        ({"codes": {"present": "+1", "absent": "0", "unknown": ""}}, arrow.string(), ["+1", None, "0"]),
    ],
)
def test_parquet_types(tmp_path, notes, kind, column):
    write(make(**notes), tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["file_name", "split", "cat", "hot dog", "tree"]
    assert (table.schema.field("cat").type, table["cat"].to_pylist()) == (kind, column)


def test_npy(tmp_path):
    options = write(make(encoding="words"), tmp_path / "out.npy")
    assert options["encoding"] == "binary"
    assert np.array_equal(
        np.load(tmp_path / "out.npy"), [[1, 0, np.nan], [np.nan, 1, 0], [0, np.nan, 1]], equal_nan=True
    )
    assert (tmp_path / "out.files.txt").read_text() == "b.jpg\na.jpg\nc,d.jpg\n"
    assert (tmp_path / "out.categories.txt").read_text() == "cat\nhot dog\ntree\n"
    assert (tmp_path / "out.splits.txt").read_text() == "train\ntest\ntrain\n"
    write(make(), tmp_path / "out.npy", encoding="signed", overwrite=True)
    assert np.load(tmp_path / "out.npy").dtype == np.int8
    assert np.load(tmp_path / "out.npy").tolist() == VALUES
    write(make(splits=["train"] * 3), tmp_path / "out.npy", overwrite=True)
    assert not (tmp_path / "out.splits.txt").exists()


def test_list(tmp_path):
    shown = [[1, 1, -1], [-1, -1, -1], [-1, 1, 1]]
    options = write(make(shown), tmp_path / "out.csv", "list")
    assert options == {"unlisted": "absent", "label_delimiter": ";", "is_valid": "test", "root": "pictures"}
    text = 'fname,labels,is_valid\nb.jpg,cat;hot dog,False\na.jpg,,True\n"c,d.jpg",hot dog;tree,False\n'
    assert (tmp_path / "out.csv").read_text() == text
    assert (tmp_path / "out.categories.txt").read_text() == "cat\nhot dog\ntree\n"
    three = make(np.clip(shown, 0, 1), splits=["train", "test", "valid"], categories=["a", "b", "c"])
    assert write(three, tmp_path / "three.csv", "list")["unlisted"] == "unknown"
    assert (tmp_path / "three.csv").read_text().splitlines()[:2] == ["fname,labels,split", "b.jpg,a b,train"]
    own = replace(three, notes={**three.notes, "label_delimiter": "|"})
    assert write(own, tmp_path / "own.csv", "list")["label_delimiter"] == "|"
    single = make([[1, -1], [-1, 1], [-1, -1]], categories=["a b;c|d,e\tf", "g"])
    assert write(single, tmp_path / "single.csv", "list")["label_delimiter"] == "none"


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        (
            "list",
            {},
            "a list cannot distinguish 3 absent from 3 unknown entries; use csv, tsv, parquet, jsonl, folder",
        ),
        (
            "csv",
            {"categories": ["a", "split", "b"]},
            "category 'split' has the name of another column; use npy or list",
        ),
        (
            "jsonl",
            {"categories": ["a", "file_name", "b"]},
            "category 'file_name' has the name of another column",
        ),
        ("npy", {"categories": ["a", "x\ny", "b"]}, "category 'x\\ny' contains a line break"),
        ("npy", {"names": ["a", "b\n", "c"]}, "image 'b\\n' contains a line break"),
        ("npy", {"categories": ["a", " x", "b"]}, "category ' x' starts or ends with a space"),
        ("npy", {"names": ["\ufeffa", "b", "c"]}, "image '\\ufeffa' starts with a byte order mark"),
        (
            "list",
            {"values": [[1, 1, -1]] * 3, "categories": ["a ", "b", "c"]},
            "category 'a ' starts or ends with",
        ),
        (
            "list",
            {"values": [[1, 1, -1]] * 3, "categories": ["a;b|c", ", \t", "d"]},
            "starts or ends with a space",
        ),
        (
            "list",
            {"values": [[1, 1, -1]] * 3, "categories": ["a;b|c", "d, \te", "f"]},
            "a list needs a delimiter",
        ),
        ("csv", {"categories": ["a", " ", "b"]}, "a category has no name"),
        ("csv", {"values": [[], [], []], "categories": []}, "there are no categories"),
        ("csv", {"categories": ["é", "e\u0301", "b"]}, "differ only in their Unicode form"),
        ("csv", {"names": ["a", "./a", "b"]}, "file_name './a' occurs twice"),
        ("csv", {"names": ["a", " ", "b"]}, "empty"),
        ("csv", {"names": ["a", "x\udc80", "b"]}, "'x\\udc80' is not valid Unicode text"),
        ("csv", {"splits": ["test"] * 3}, "there are no training images"),
    ],
)
def test_what_a_format_cannot_hold_is_not_written(tmp_path, form, change, message):
    path = tmp_path / {"list": "out.csv"}.get(form, f"out.{form}")
    with pytest.raises(DataError) as error:
        write(make(**change), path, form)
    assert "not written" in str(error.value) and message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_encodings_that_do_not_fit(tmp_path):
    with pytest.raises(DataError, match="a list holds names, not codes; remove --encoding"):
        write(make([[1, 1, 1]] * 3), tmp_path / "out.csv", "list", "binary")
    with pytest.raises(DataError, match=r"an \.npy file holds numbers, not words"):
        write(make(), tmp_path / "out.npy", encoding="words")
    with pytest.raises(DataError, match=r"unknown encoding 'singed'\. Did you mean 'signed'"):
        write(make(), tmp_path / "out.csv", encoding="singed")
    wrong = {"present": "0", "absent": "1", "unknown": ""}  # notes that contradict their encoding are ignored
    write(make(codes=wrong), tmp_path / "out.csv")
    assert "b.jpg,train,1,0,\n" in (tmp_path / "out.csv").read_text()
    write(make(encoding="of its own"), tmp_path / "binary.csv")
    assert "b.jpg,train,1,0,\n" in (tmp_path / "binary.csv").read_text()


def test_where_to_write(tmp_path):
    assert target(tmp_path / "a.CSV", None) == (tmp_path / "a.CSV", "csv")
    assert target(tmp_path, None) == (tmp_path / "metadata.csv", "folder")
    assert target(tmp_path / "new", "folder") == (tmp_path / "new" / "metadata.csv", "folder")
    with pytest.raises(DataError, match=r"a\.txt: expected a file that ends in \.csv, \.tsv, "):
        target("a.txt", None)
    with pytest.raises(DataError, match=r"a\.csv: a file of format parquet must be named a\.parquet"):
        target("a.csv", "parquet")
    with pytest.raises(
        DataError, match=r"the file in a folder must be named metadata\.csv, metadata\.jsonl or"
    ):
        target("a.csv", "folder")
    with pytest.raises(ConfigError, match=r"unknown format to write 'parket'\. Did you mean 'parquet'"):
        target("a.csv", "parket")


def test_neither_the_source_nor_another_file_is_replaced(tmp_path):
    write_wide_csv(tmp_path)
    data = load(tmp_path / "labels.csv", encoding="binary")
    before = (tmp_path / "labels.csv").read_bytes()
    (tmp_path / "link.csv").symlink_to(tmp_path / "labels.csv")
    for name in ("labels.csv", "link.csv", "images/../labels.csv"):
        with pytest.raises(DataError, match="this is the source itself, which is never changed"):
            write(data, tmp_path / name, overwrite=True)
    assert (tmp_path / "labels.csv").read_bytes() == before
    for form, sides in SIDES.items():
        for side in sides:
            (tmp_path / f"out{side}").write_text("mine")
            with pytest.raises(DataError, match=rf"out{side}: exists already; add --overwrite"):
                write(data, tmp_path / ("out.npy" if form == "npy" else "out.csv"), form)
            assert (tmp_path / f"out{side}").read_text() == "mine"
            (tmp_path / f"out{side}").unlink()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        write(data, tmp_path / "folder.csv", "csv", overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        write(data, tmp_path / "file" / "out.csv")


def test_nothing_is_left_of_a_write_that_fails(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sarb.data.writers.formats.np.save", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*out\.npy'"):
        write(make(), tmp_path / "out.npy")
    assert not list(tmp_path.iterdir())


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'sarb\[table\]'"):
        write(make(), tmp_path / "out.parquet")
    assert not list(tmp_path.iterdir())


def test_drawn_splits_are_drawn_again_and_not_written(tmp_path):
    names = [f"{number}.jpg" for number in range(30)]
    (tmp_path / "in.csv").write_text("file_name,cat\n" + "".join(f"{name},yes\n" for name in names))
    for drawn in (
        {},
        {"test": 1 / 3, "split_seed": 4},
        {"test": 0.1, "valid": 0.25, "split_seed": 2},
        {"test": 0},
    ):
        data = load(tmp_path / "in.csv", check_files=False, **drawn)
        options = write(data, tmp_path / "out.csv", overwrite=True)
        assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "in.csv").read_bytes()
        again = load(tmp_path / "out.csv", **options, check_files=False)
        assert again.splits == {name: replace(part, name="out") for name, part in data.splits.items()}
        usual = {name: value for name, value in drawn.items() if name == "split_seed"}
        assert options == {
            "encoding": "words",
            **{name: pytest.approx(share) for name, share in drawn.items()},
            **usual,
        }


def test_splits_that_would_be_drawn_otherwise_are_written(tmp_path):
    (tmp_path / "in.csv").write_text(
        "file_name,cat\n" + "".join(f"{number}.jpg,yes\n" for number in range(10))
    )
    data = load(tmp_path / "in.csv", check_files=False)
    changed = replace(data, train=data.train.take([3, 1, 2]))
    options = write(changed, tmp_path / "out.csv")
    again = load(tmp_path / "out.csv", **options, check_files=False)
    assert again.train.labels == changed.train.labels
    assert again.test.labels == changed.test.labels
    assert "split" in (tmp_path / "out.csv").read_text().splitlines()[0]


def test_splits_in_different_folders(tmp_path):
    write_coco(tmp_path)
    with pytest.warns(DataWarning, match="not COCO"):
        data = load(f"coco:{tmp_path}")
    options = write(data, tmp_path / "labels.csv")
    assert options == {"encoding": "binary"}
    again = load(tmp_path / "labels.csv", **options)
    assert [file.resolve() for file in again.test.paths] == [file.resolve() for file in data.test.paths]
    assert again.test.labels.paths[0].startswith("val2014/COCO_val2014_")
    assert np.array_equal(again.train.labels.values, data.train.labels.values)


def test_images_beside_are_found_without_an_option(tmp_path):
    write_wide_csv(tmp_path)
    data = load(tmp_path / "labels.csv", encoding="binary")
    assert write(data, tmp_path / "labels.parquet") == {"encoding": "binary"}
    assert write(data, tmp_path / "images" / "metadata.csv", "folder") == {"encoding": "binary"}
    assert write(data, tmp_path / "other" / "x.csv") == {
        "encoding": "binary",
        "root": str(tmp_path / "images"),
    }
    assert len(load(tmp_path / "images", encoding="binary").train) == 6


@pytest.mark.parametrize("form", WRITERS)
def test_convert_says_how_to_read_it(tmp_path, form):
    write_wide_csv(tmp_path / "my data")
    out = tmp_path / "out" / {"list": "o.csv", "folder": "metadata.jsonl"}.get(form, f"o.{form}")
    command = convert(tmp_path / "my data" / "labels.csv", out, form, options={"encoding": "binary"})
    words = shlex.split(command)
    assert words[:4] == ["sarb", "data", "check", f"{reader_of(form)}:{out}"]
    assert set(words[4::2]) == {"-o"}
    options = dict(word.split("=", 1) for word in words[5::2])
    original = load(tmp_path / "my data" / "labels.csv", encoding="binary")
    again = load(words[3], **options)
    assert again.train.labels == original.train.labels
    assert again.test.paths == original.test.paths


def test_quoted():
    assert [quoted(text, ",") for text in ("a b", "a,b", 'a"b', "a\nb", "a\tb")] == [
        "a b",
        '"a,b"',
        '"a""b"',
        '"a\nb"',
        "a\tb",
    ]


def test_typed():
    codes = {
        "": None,
        "1": 1,
        "-1": -1,
        "1.0": 1.0,
        "True": True,
        "+1": "+1",
        "yes": "yes",
        "01": "01",
        "1e0": "1e0",
    }
    assert [(typed(code), type(typed(code))) for code in codes] == [
        (value, type(value)) for value in codes.values()
    ]


@pytest.mark.parametrize("columns", [1, 4, 5, 6, 13])
def test_joined(columns, monkeypatch):
    monkeypatch.setattr("sarb.data.writers.formats.BLOCK", 3)
    values = np.random.RandomState(0).randint(-1, 2, (10, columns)).astype(np.int8)
    cells = [[f"{place}-", f"{place}?", f"{place}+"] for place in range(columns)]
    expected = [",".join(cells[place][label + 1] for place, label in enumerate(row)) for row in values]
    assert list(joined(values, cells, ",")) == expected


def test_every_split_keeps_its_order(tmp_path):
    data = make(splits=["test", "train", "valid"])
    assert isinstance(data, Data)
    write(data, tmp_path / "out.csv")
    assert [line.split(",")[:2] for line in (tmp_path / "out.csv").read_text().splitlines()[1:3]] == [
        ["b.jpg", "test"],
        ["a.jpg", "train"],
    ]


@pytest.mark.parametrize("hide", [{"known": 0.4, "mask_seed": 3}, {"single_positive": True, "mask_seed": 3}])
def test_hides_the_labels_that_training_would_hide(tmp_path, hide):
    from sarb.workflows.labelled import hidden

    write_wide_csv(tmp_path / "photos")
    source = tmp_path / "photos" / "labels.csv"
    whole = load(source, encoding="binary")
    convert(str(source), tmp_path / "gaps.csv", options={"encoding": "binary"}, **hide)
    written = load(tmp_path / "gaps.csv", encoding="binary", root=str(whole.train.root))
    wanted = hidden(whole, hide.get("known", 1), hide.get("single_positive", False), hide["mask_seed"])
    assert written.train.labels.paths == wanted.train.labels.paths
    assert np.array_equal(written.train.labels.values, wanted.train.labels.values)
    assert np.array_equal(written.test.labels.values, whole.test.labels.values)
    assert written.train.labels.known.sum() < whole.train.labels.known.sum()
