"""Labels written again: only what is new differs from the source, and the source's options read it."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

import sarb
from sarb.data.writers.rewrite import rewrite
from sarb.errors import DataError
from sarb.labels import LabelMatrix
from tests.data.fixtures import write_image
from tests.data.formats import write_example


@pytest.fixture
def folder(tmp_path):
    """A folder ``mine`` with pictures a.jpg to d.jpg."""
    for number, name in enumerate("abcd"):
        write_image(tmp_path / "mine" / f"{name}.jpg", number, (8, 8))
    return tmp_path / "mine"


def relabelled(data, changes):
    """Return data with new labels, (image, category) -> label."""
    splits = {}
    for split, part in data.splits.items():
        values = part.labels.values.copy()
        for (name, category), label in changes.items():
            if name in part.labels.paths:
                values[part.labels.paths.index(name), part.categories.index(category)] = label
        splits[split] = replace(part, labels=LabelMatrix(values, part.categories, part.labels.paths))
    return replace(data, **splits)


def labels(data):
    return {
        path.resolve().name: row.tolist()
        for part in data.splits.values()
        for path, row in zip(part.paths, part.labels.values, strict=True)
    }


def test_mixed_spelling_order_of_columns_and_other_columns_stay(folder):
    text = "x,id,Filenames,y,split,note\nYES,1,a.jpg,No,train,\nno,2,b.jpg,,train,?\n"
    text += ",3,c.jpg,No,Test,old\nYes,4,d.jpg,No,test,\n"
    (folder / "labels.csv").write_text(text)
    options = {"ignore": "id,note", "file_column": "Filenames"}
    data = sarb.load(folder / "labels.csv", **options)
    how = rewrite(relabelled(data, {("b.jpg", "y"): -1, ("c.jpg", "x"): 1}), folder / "new.csv")
    changed = text.replace("2,b.jpg,,", "2,b.jpg,No,").replace("\n,3,", "\nYES,3,")
    assert (folder / "new.csv").read_text() == changed
    assert how == (str(folder / "new.csv"), options, "")
    assert labels(sarb.load(how.source, **how.options))["c.jpg"] == [1, -1]


def test_a_new_code_has_the_style_of_the_others(folder):
    (folder / "labels.csv").write_text("file_name,x,y\na.jpg,Yes,\nb.jpg,,Yes\nc.jpg,,\nd.jpg,,\n")
    data = sarb.load(folder / "labels.csv", test=0)
    rewrite(relabelled(data, {("c.jpg", "x"): -1}), folder / "new.csv")
    assert "c.jpg,No,\n" in (folder / "new.csv").read_text()


def test_json_lines_keep_types_spaces_and_other_values(folder):
    lines = [
        '{"file_name":"a.jpg","box":[1,2],"x":true,"y":null,"n":1.50}\n',
        '{"file_name":"b.jpg","x":false,"y":true,"n":1e3}\r\n',
        '{"file_name":"c.jpg","y":false,"title":"\\u00e9"}\n',
    ]
    (folder / "labels.jsonl").write_bytes("".join(lines).encode())
    options = {"ignore": "box,n,title", "test": 0}
    data = sarb.load(folder / "labels.jsonl", **options)
    how = rewrite(relabelled(data, {("b.jpg", "y"): -1, ("c.jpg", "x"): 1}), folder / "new.jsonl")
    written = (folder / "new.jsonl").read_bytes().decode().splitlines(keepends=True)
    assert written[0] == lines[0]
    assert written[1] == '{"file_name":"b.jpg","x":false,"y":false,"n":1000.0}\r\n'
    assert written[2] == '{"file_name":"c.jpg","y":false,"title":"\\u00e9","x":true}\n'
    assert labels(sarb.load(how.source, **how.options)) == {
        "a.jpg": [1, 0],
        "b.jpg": [-1, -1],
        "c.jpg": [1, -1],
    }


def test_parquet_keeps_types_and_other_columns(folder):
    table = arrow.table(
        {
            "image": ["a.jpg", "b.jpg", "c.jpg"],
            "box": [[1, 2], [3], None],
            "x": arrow.array([1, 0, None], arrow.int16()),
            "y": arrow.array([1.0, float("nan"), 0.0]),
            "z": arrow.array(["1", None, "0"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, folder / "labels.parquet")
    options = {"ignore": "box", "test": 0, "encoding": "binary"}
    with pytest.warns(sarb.errors.DataNote, match="column 'image'"):
        data = sarb.load(folder / "labels.parquet", **options)
    new = relabelled(data, {("c.jpg", "x"): 1, ("b.jpg", "y"): -1, ("b.jpg", "z"): 1})
    how = rewrite(new, folder.parent / "away" / "new.parquet")
    written = parquet.read_table(folder.parent / "away" / "new.parquet")
    assert written.schema.field("x").type == arrow.int16() and written["x"].to_pylist() == [1, 0, 1]
    assert written["y"].to_pylist() == [1.0, 0.0, 0.0]
    assert arrow.types.is_dictionary(written.schema.field("z").type) and written["z"].to_pylist() == [
        "1",
        "1",
        "0",
    ]
    assert written["box"].to_pylist() == [[1, 2], [3], None]
    assert written["image"].to_pylist() == ["../mine/a.jpg", "../mine/b.jpg", "../mine/c.jpg"]
    with pytest.warns(sarb.errors.DataNote, match="column 'image'"):
        again = sarb.load(how.source, **how.options)
    assert labels(again)["b.jpg"] == [-1, -1, 1]


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".parquet"])
def test_another_kind_of_table_keeps_the_columns(folder, suffix):
    (folder / "labels.csv").write_text("note,Filenames,x,y\nold,a.jpg,1,\n,b.jpg,0,1\n")
    options = {"file_column": "Filenames", "ignore": "note", "encoding": "binary", "test": 0}
    data = sarb.load(folder / "labels.csv", **options)
    how = rewrite(relabelled(data, {("a.jpg", "y"): -1}), folder / f"new{suffix}")
    assert labels(sarb.load(how.source, **how.options)) == {"a.jpg": [1, -1], "b.jpg": [-1, 1]}


def test_root_as_given_and_a_root_that_is_not_there(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    (folder / "labels.csv").write_text("file_name,x\na.jpg,yes\nb.jpg,no\n")
    data = sarb.load("mine/labels.csv", root="mine", test=0)
    rewrite(data, "away/new.csv")
    assert "\na.jpg,yes\n" in (folder.parent / "away/new.csv").read_text()
    (folder / "pictures").mkdir()
    (folder / "a.jpg").rename(folder / "pictures" / "a.jpg")
    (folder / "b.jpg").rename(folder / "pictures" / "b.jpg")
    data = sarb.load(
        "mine/labels.csv", root="pictures", test=0
    )  # beside the table, not in the current folder
    how = rewrite(data, "away/new.csv", overwrite=True)
    assert f"\n{folder}/pictures/a.jpg,yes\n" in (folder.parent / "away/new.csv").read_text()
    assert labels(sarb.load(how.source, **how.options)) == {"a.jpg": [1], "b.jpg": [-1]}


def test_a_list_keeps_its_order_and_lists_what_is_absent(folder):
    text = "image;labels;more\na.jpg;cat|dog;x\nb.jpg;;\nc.jpg;dog | cow;\n"
    (folder / "list.csv").write_text(text)
    options = {"unlisted": "unknown", "delimiter": ";", "test": 0, "file_column": "image"}
    data = sarb.load(f"list:{folder / 'list.csv'}", **options)
    new = relabelled(
        data, {("b.jpg", "cow"): 1, ("b.jpg", "cat"): -1, ("b.jpg", "dog"): -1, ("a.jpg", "cow"): 1}
    )
    how = rewrite(new, folder / "new.csv")
    written = "image;labels;more;absent_labels\na.jpg;cat|dog|cow;x;\nb.jpg;cow;;cat|dog\nc.jpg;dog | cow;;\n"
    assert (folder / "new.csv").read_text() == written
    again = sarb.load(how.source, **how.options)
    assert again.categories == data.categories and labels(again) == labels(new)
    rewrite(relabelled(again, {("c.jpg", "cat"): -1}), folder / "third.csv")
    assert (folder / "third.csv").read_text() == written.replace("c.jpg;dog | cow;;", "c.jpg;dog | cow;;cat")


def test_a_list_in_which_all_the_rest_is_absent(folder):
    (folder / "list.csv").write_text("fname,labels\na.jpg,cat\nb.jpg,dog\n")
    options = {"unlisted": "absent", "test": 0}
    data = sarb.load(folder / "list.csv", **options)
    new = relabelled(data, {("a.jpg", "dog"): 0, ("b.jpg", "cat"): 1})
    how = rewrite(new, folder / "new.csv")
    assert (folder / "new.csv").read_text() == "fname,labels,unknown_labels\na.jpg,cat,dog\nb.jpg,dog;cat,\n"
    assert labels(sarb.load(how.source, **how.options)) == labels(new)
    none = sarb.load(folder / "list.csv", **options, label_delimiter="none")
    with pytest.raises(DataError, match=r"label_delimiter=none a cell holds one label.*FILE\.parquet"):
        rewrite(none, folder / "other.csv")


def test_an_array_with_names_of_its_own(folder):
    np.save(folder / "labels.npy", np.array([[1, 0], [0, 1], [1, 1]], np.uint8))
    (folder / "names.txt").write_text("a.jpg\nb.jpg\nc.jpg\n")
    (folder / "labels.categories.txt").write_text("x\ny\n")
    options = {"files": "names.txt", "encoding": "binary", "test": 0}
    data = sarb.load(folder / "labels.npy", **options)
    new = relabelled(data, {("a.jpg", "y"): 1, ("b.jpg", "x"): 0})
    for place in (folder, folder.parent / "away"):
        how = rewrite(new, place / "new.npy")
        assert labels(sarb.load(how.source, **how.options)) == {
            "a.jpg": [1, 1],
            "b.jpg": [0, 1],
            "c.jpg": [1, 1],
        }
    assert (
        folder.parent / "away" / "names.txt"
    ).read_text() == "../mine/a.jpg\n../mine/b.jpg\n../mine/c.jpg\n"
    assert (folder / "names.txt").read_text() == "a.jpg\nb.jpg\nc.jpg\n"


def test_metadata_of_several_folders_become_one_table(tmp_path):
    example = write_example("metadata_csv", tmp_path)
    data = sarb.load(example.source)
    how = rewrite(data, tmp_path / "new.csv")
    assert (tmp_path / "new.csv").read_text().splitlines()[:2] == [
        "file_name,cat,dog,split",
        "train/0001.png,present,absent,train",
    ]
    again = sarb.load(how.source)
    assert {split: part.labels.values.tolist() for split, part in again.splits.items()} == {
        split: list(rows.values()) for split, rows in example.splits.items()
    }


def test_other_formats_need_no_option(tmp_path):
    example = write_example("voc", tmp_path)
    data = sarb.load(example.source, **example.options)
    how = rewrite(data, tmp_path / "away" / "new.csv")
    assert (how.options, how.foreign) == ({}, "voc")
    again = sarb.load(how.source)
    assert again.categories == data.categories
    assert {path.resolve() for path in again.test.paths} == set(data.test.paths)
    assert json.dumps(again.train.labels.values.tolist()) == json.dumps(data.train.labels.values.tolist())
    assert how.command("sarb", "train", "--data") == f"sarb train --data {tmp_path}/away/new.csv"


def test_a_source_that_has_changed_or_is_the_target(folder):
    (folder / "labels.csv").write_text("file_name,x\na.jpg,yes\nb.jpg,no\n")
    data = sarb.load(folder / "labels.csv", test=0)
    with pytest.raises(DataError, match="this is the source itself"):
        rewrite(data, folder / "labels.csv", overwrite=True)
    rewrite(data, folder / "new.csv")
    with pytest.raises(DataError, match="exists already"):
        rewrite(data, folder / "new.csv")
    (folder / "labels.csv").write_text("file_name,x\nb.jpg,no\n")
    with pytest.raises(DataError, match=r"labels\.csv: has changed since it was read"):
        rewrite(data, folder / "new.csv", overwrite=True)
