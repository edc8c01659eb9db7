import numpy as np
import pytest

from sarb import load
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image, write_wide_csv


@pytest.fixture
def table(tmp_path):
    """Return a function that writes text to labels.csv, with pictures a.jpg to f.jpg beside it."""
    for number, name in enumerate("abcdef"):
        write_image(tmp_path / f"{name}.jpg", number, (8, 8))

    def write(text, encoding="utf-8"):
        path = tmp_path / "labels.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_fixture_matrix(tmp_path):
    shown = write_wide_csv(tmp_path)
    data = load(tmp_path / "labels.csv", encoding="binary")
    assert data.categories == ("cat", "dog", "hot dog", "tree", "car")
    for dataset, split in ((data.train, "train"), (data.test, "test")):
        assert list(dataset.labels.paths) == list(shown[split])
        expected = [
            [1 if name in names else -1 for name in data.categories] for names in shown[split].values()
        ]
        assert dataset.labels.values.tolist() == expected
        assert all(path.is_file() and path.parent.name == "images" for path in dataset.paths)
    assert data.valid is None
    assert data.notes["test_split"] == "split column"
    assert data.train[0][0].size == (64, 48)


@pytest.mark.parametrize(
    ("encoding", "cells", "expected"),
    [
        ("signed", "1,-1,0", [1, -1, 0]),
        ("binary", "1,0,", [1, -1, 0]),
        ("minus_one_unknown", "1,0,-1", [1, -1, 0]),
        ("signed", " 1.0 ,-1.0,+0", [1, -1, 0]),
        (None, "present,absent,unknown", [1, -1, 0]),
        (None, "Yes,no,?", [1, -1, 0]),
        (None, "yes,,NO", [1, 0, -1]),
        (None, ",,", [0, 0, 0]),
    ],
)
def test_encodings(table, encoding, cells, expected):
    path = table(f"file_name,split,x,y,z\na.jpg,test,{cells}\n")
    assert load(path, encoding=encoding).test.labels.values.tolist() == [expected]


def test_bom_crlf_blank_lines_quotes_and_column_order(table):
    text = '\ufefffile_name,split,x,"y, z"\r\na.jpg,train,yes,no\r\n\r\n"b.jpg",TEST,no,yes\r\nc.jpg,val,?,yes\r\n'
    data = load(table(text))
    assert data.categories == ("x", "y, z")
    assert (data.train.labels.paths, data.test.labels.paths) == (("a.jpg",), ("b.jpg",))
    assert data.valid.labels.values.tolist() == [[0, 1]]
    mixed = load(table("x,file_name,y,split\nyes,a.jpg,no,test\n"))
    assert (mixed.categories, mixed.test.labels.values.tolist()) == (("x", "y"), [[1, -1]])


def test_numeric_codes_need_an_encoding_and_the_error_shows_the_readings(table):
    path = table("file_name,x,y\na.jpg,1,0\nb.jpg,0,0\n")
    with pytest.raises(DataError) as error:
        load(path)
    text = str(error.value)
    assert "-o encoding=signed: 1 present, 0 absent, 3 unknown" in text
    assert "-o encoding=binary: 1 present, 3 absent, 0 unknown" in text
    assert "minus_one_unknown" in text
    with pytest.raises(DataError) as error:
        load(table("file_name,x,y\na.jpg,1,-1\nb.jpg,-1,0\n"))
    assert "encoding=binary" not in str(error.value)


def test_codes_that_no_encoding_has(table):
    with pytest.raises(
        DataError, match=r"no encoding covers all codes in it: 1 \(1 time\), -1 \(1 time\), blank \(1 time\)"
    ):
        load(table("file_name,x,y,z\na.jpg,1,-1,\n"))
    with pytest.raises(DataError, match="line 2, column 'y': value '2'; expected 1, 0, -1"):
        load(table("file_name,x,y\na.jpg,1,2\n"))
    with pytest.raises(DataError, match=r"line 2, column 'y': value '1'; expected .* \(encoding words\)"):
        load(table("file_name,x,y\na.jpg,yes,1\n"))
    with pytest.raises(DataError, match=r"unknown encoding 'binray'.*Did you mean 'binary'"):
        load(table("file_name,x\na.jpg,1\n"), encoding="binray")


def test_all_faults_at_once(table):
    text = "file_name,split,x,y\na.jpg,train,1,0\nb.jpg,trian,1,7\na.jpg,test,1,0\n"
    text += "c.jpg,test,1\n,test,1,1\nnone.jpg,test,1,-1\n"
    with pytest.raises(DataError) as error:
        load(table(text), encoding="binary")
    text = str(error.value)
    assert "labels.csv: 7 problems" in text
    assert "line 3, column 'split': value 'trian'; expected train, test or valid" in text
    assert "line 3, column 'y': value '7'; expected '1', '0' or blank (encoding binary)" in text
    assert "line 7, column 'y': value '-1'" in text
    assert "file_name 'a.jpg' occurs twice, on lines 2 and 4" in text
    assert "line 5: 3 fields, but the header has 4" in text
    assert "line 6, column 'file_name': empty" in text
    assert "image files are missing" in text and "none.jpg" in text


def test_at_most_twenty_are_shown_but_all_are_counted(table):
    rows = "".join(f"{number}.jpg,9,9\n" for number in range(30))
    with pytest.raises(DataError) as error:
        load(table("file_name,x,y\n" + rows), encoding="binary", check_files=False)
    assert "60 problems" in str(error.value) and "… and 40 more" in str(error.value)
    assert str(error.value).count("value '9'") == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("file_name,x\n", "no row"),
        ("a.jpg,1,0\n", "line 1: the header has no column 'file_name', only a.jpg, 1, 0"),
        ("filename,x\nz.jpg,1\n", "Rename 'filename' to 'file_name', or add -o file_column=filename."),
        ("file_name;x\na.jpg;1\n", "add -o delimiter=';'"),
        ("file_name\tx\na.jpg\t1\n", "add -o delimiter=tab"),
        ("file_name,split\na.jpg,train\n", "the header contains no category"),
        ("file_name,x,y,x\na.jpg,1,1,1\n", "column 'x' occurs twice, as columns 2 and 4"),
        ("file_name,x,\na.jpg,1,1\n", "column 3 has no name"),
    ],
)
def test_bad_files(table, text, message):
    with pytest.raises(DataError, match=r"labels\.csv") as error:
        load(table(text), encoding="binary")
    assert message in str(error.value)


def test_not_utf8_names_the_line(table):
    with pytest.raises(DataError, match="line 3: not UTF-8"):
        load(table("file_name,x\na.jpg,1\né.jpg,1\n", "latin-1"), encoding="binary")


def test_delimiters(table):
    assert load(table("file_name;x\na.jpg;yes\n"), delimiter=";", test=0).train.labels.values.tolist() == [
        [1]
    ]
    assert load(table("file_name\tx\na.jpg\tyes\n"), delimiter="tab", test=0).categories == ("x",)
    with pytest.raises(ConfigError, match="one character"):
        load(table("file_name,x\n"), delimiter="||")


def test_random_splits_are_seeded_disjoint_and_complete(table):
    path = table("file_name,x\n" + "".join(f"{name}.jpg,yes\n" for name in "abcdef"))
    first, again = (load(path, test=1 / 3, valid=0.25, split_seed=4) for _ in range(2))
    parts = [first.train.labels.paths, first.valid.labels.paths, first.test.labels.paths]
    assert [len(part) for part in parts] == [3, 1, 2]
    assert sorted(sum(parts, ())) == [f"{name}.jpg" for name in "abcdef"]
    assert again == first
    order = np.random.RandomState(4).permutation(6)
    assert first.test.labels.paths == tuple(f"{'abcdef'[row]}.jpg" for row in sorted(order[:2]))
    assert "seed 4" in first.notes["test_split"]
    with pytest.raises(ConfigError, match="option test must be between 0 and 1"):
        load(path, test=20)


def test_validation_rows_and_option_valid_exclude_each_other(table):
    path = table("file_name,split,x\na.jpg,train,yes\nb.jpg,validation,yes\nc.jpg,test,no\n")
    assert load(path).valid.labels.paths == ("b.jpg",)
    with pytest.raises(DataError, match=r"option valid=0\.1 cannot apply"):
        load(path, valid=0.1)


def test_root(tmp_path):
    write_wide_csv(tmp_path, folder="images")
    path = tmp_path / "labels.csv"
    assert load(path, encoding="binary").train.root == tmp_path / "images"
    assert load(path, encoding="binary", root=tmp_path / "images").train.root == tmp_path / "images"
    assert load(path, encoding="binary", check_files=False).train.root == tmp_path / "images"
    with pytest.raises(
        DataError, match=r"9 of 9 image files are missing in .*: 000.jpg, .*, …; add -o root=DIR if they"
    ):
        load(path, encoding="binary", root=tmp_path / "elsewhere")
    write_image(tmp_path / "000.jpg")
    with pytest.raises(DataError, match=r"-o root=DIR to say which"):
        load(path, encoding="binary")


def test_names_with_the_folder_in_them_and_absolute_names(tmp_path):
    image = write_image(tmp_path / "images" / "a.jpg")
    (tmp_path / "labels.csv").write_text("file_name,x\nimages/a.jpg,yes\n")
    assert load(tmp_path / "labels.csv", test=0).train.paths == [image]
    (tmp_path / "labels.csv").write_text(f"file_name,x\n{image},yes\n")
    assert load(tmp_path / "labels.csv", test=0).train.paths == [image]
    image.unlink()
    with pytest.raises(
        DataError, match=r"1 of 1 image files are missing .* add -o root=DIR if they are elsewhere"
    ):
        load(tmp_path / "labels.csv")
