import unicodedata

import numpy as np
import pytest

from sarb.data.assemble import assemble, declared_names, divide, find_root, finish, near_file
from sarb.data.check.problems import DataWarning, Problems, gather
from sarb.data.dataset import Data, Dataset
from sarb.errors import DataError
from sarb.labels import LabelMatrix
from tests.data.fixtures import write_image


def build(names, rows, splits=None, lines=None, categories=("x", "y")):
    return assemble(
        Problems("a.csv"), names, np.array(rows, np.int8), categories, root=".", splits=splits, lines=lines
    )


def gathered(*args, **options):
    with gather() as found:
        data = build(*args, **options)
    return data, [(finding.level, finding.kind, finding.line, finding.message) for finding in found.shown]


def test_rows_are_divided_by_the_words():
    data = build(
        ["a", "b", "c", "d"], [[1, 0], [0, 1], [-1, 0], [1, 1]], ["", "test", "valid", "train"], [2, 3, 5, 9]
    )
    assert [data.train.labels.paths, data.test.labels.paths, data.valid.labels.paths] == [
        ("a", "d"),
        ("b",),
        ("c",),
    ]
    assert (data.train.lines.tolist(), data.test.line(0)) == ([2, 9], 3)
    assert data.notes == {"test_split": "split column"} and data.train.source.name == "a.csv"
    assert list(data.splits) == ["train", "valid", "test"]
    whole = build(["a"], [[1, 0]])
    assert len(whole.test) == 0 and whole.valid is None and whole.train.line(0) is None and whole.notes == {}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("birds.csv", "birds"),
        ("zoo/labels.csv", "zoo"),
        ("zoo/birds.csv", "birds"),
        ("/labels.csv", "labels"),
    ],
)
def test_a_file_name_that_says_nothing_gives_way_to_the_folder(file, name):
    found = assemble(Problems(file), ["a"], np.array([[1]], np.int8), ["x"], root=".")
    assert found.train.name == name


def test_repeated_images_name_both_lines_and_say_what_differs():
    names = ["a", "b", "a", "./b", "c", "c"]
    rows = [[1, 0], [1, -1], [1, 1], [-1, 1], [0, 0], [0, 0]]
    data, found = gathered(
        names, rows, ["train", "train", "train", "train", "train", "test"], [2, 3, 4, 5, 6, 7]
    )
    assert data.train.labels.paths == ("a", "b", "c") and len(data.test) == 0
    assert found == [
        ("error", "duplicate-row", 4, "file_name 'a' occurs twice, on lines 2 and 4"),
        (
            "error",
            "conflicting-rows",
            5,
            "file_name './b' occurs twice, on lines 3 and 5; "
            "they disagree: 'x' is present and absent (and 1 more)",
        ),
        (
            "error",
            "split-overlap",
            7,
            "file_name 'c' occurs twice, on lines 6 and 7; once in train, once in test",
        ),
    ]


def test_unusable_names():
    data, found = gathered(["", " ", "a\0b", "c"], [[0, 0]] * 4, None, [2, 3, 4, 5])
    assert data.train.labels.paths == ("c",)
    assert [item[1:3] for item in found] == [("bad-name", 2), ("bad-name", 3), ("bad-name", 4)]
    with pytest.raises(DataError, match=r"a\.csv, line 2, column 'file_name': empty"):
        build([""], [[0, 0]], None, [2])


def test_a_category_with_a_nul_is_refused():
    with pytest.raises(DataError, match="contains a NUL"):
        build(["a"], [[0, 0]], categories=("a\0", "b"))


def test_categories_that_look_the_same():
    nfc = unicodedata.normalize("NFC", "café")
    nfd = unicodedata.normalize("NFD", "café")
    _, found = gathered(["a"], [[0] * 5], categories=("Dog", "dog", " cat", nfc, nfd))
    assert [item[:2] for item in found] == [
        ("warning", "similar-categories"),
        ("warning", "spaces"),
        ("error", "similar-categories"),
    ]
    assert "NFC/NFD" in found[2][3]
    with pytest.warns(DataWarning, match="'Dog' and 'dog' differ only in case"):
        build(["a"], [[0, 0]], categories=("Dog", "dog"))


def dataset(root, count, name="x"):
    names = [f"{name}{number}.jpg" for number in range(count)]
    return Dataset(LabelMatrix(np.ones((count, 1), np.int8), ["c"], names), root, lines=np.arange(count) + 2)


def test_missing_splits_are_drawn(tmp_path):
    whole = Data(dataset(tmp_path, 10), dataset(tmp_path, 0))
    data = finish(whole, test=0.3, valid=0.5, split_seed=7, check_files=False)
    order = np.random.RandomState(7).permutation(10)
    assert data.test.labels.paths == tuple(f"x{row}.jpg" for row in sorted(order[:3]))
    assert [len(part) for part in data.splits.values()] == [3, 4, 3]
    assert len({path for part in data.splits.values() for path in part.labels.paths}) == 10
    assert data.notes["test_split"] == "random share 0.3, seed 7" and "0.5" in data.notes["valid_split"]
    assert len(finish(whole, check_files=False).test) == 2
    own = Data(dataset(tmp_path, 4), dataset(tmp_path, 3, "t"), dataset(tmp_path, 2, "v"))
    assert finish(own, check_files=False) == own
    with pytest.raises(DataError) as error:
        finish(own, test=0.5, valid=0.5, check_files=False)
    assert "its own test images (3), so option test=0.5 cannot apply" in str(error.value)
    assert "its own valid images (2)" in str(error.value)


def test_missing_files_are_summed_up_or_listed(tmp_path):
    for number in (0, 2):
        write_image(tmp_path / f"x{number}.jpg", size=(8, 8))
    (tmp_path / "X1.JPG").touch()
    data = Data(dataset(tmp_path, 4), dataset(tmp_path / "elsewhere", 2))
    with pytest.raises(DataError) as error:
        finish(data)
    assert f"2 of 4 image files are missing in {tmp_path}: x1.jpg, x3.jpg. There is 'X1.JPG'" in str(
        error.value
    )
    assert "2 of 2 image files are missing" in str(error.value) and "add -o root=DIR" in str(error.value)
    with gather() as found:
        assert len(finish(data).train) == 4
    assert [(finding.kind, finding.line, finding.value) for finding in found.shown] == [
        ("missing-file", 3, "x1.jpg"),
        ("missing-file", 5, "x3.jpg"),
        ("missing-file", 2, "x0.jpg"),
        ("missing-file", 3, "x1.jpg"),
    ]
    with gather(limit=20) as found:
        finish(Data(dataset(tmp_path / "none", 50), dataset(tmp_path, 0)))
    assert found.counts == {("error", "missing-file"): 50}
    (one,) = found.shown  # no image is there: one cause
    assert one.message.startswith("50 of 50 image files are missing") and " add -o root=DIR" in one.message
    assert (one.line, one.value) == (2, "x0.jpg")


def test_near_files(tmp_path):
    nfd = unicodedata.normalize("NFD", "é.jpg")
    for name in ("Photo.JPG", nfd, "b.png", "picture_0001.jpg"):
        (tmp_path / name).touch()
    assert near_file(tmp_path, "photo.jpg") == ". There is 'Photo.JPG', which differs in case"
    assert near_file(tmp_path, unicodedata.normalize("NFC", "é.jpg")).endswith("its Unicode form (NFC/NFD)")
    assert near_file(tmp_path, "b.jpg") == ". Did you mean 'b.png'?"
    assert near_file(tmp_path, "picture_001.jpg") == ". Did you mean 'picture_0001.jpg'?"
    assert (
        near_file(tmp_path, "zzz.jpg")
        == near_file(tmp_path, "no/a.jpg")
        == near_file(tmp_path, "a\0/b.jpg")
        == ""
    )


def test_declared_names(tmp_path):
    (tmp_path / "names.txt").write_text("cat\n\n hot dog \r\n")
    base = tmp_path / "a.csv"
    assert declared_names(None, base) is None
    assert declared_names("names.txt", base) == ["cat", "hot dog"]
    assert declared_names("b, a", base) == ["b", "a"]
    many = [f"category {number}" for number in range(200)]
    assert declared_names(",".join(many), base) == many
    for value, message in (
        ("none.txt", "no such file"),
        ("a,b,a", "named twice: a"),
        (",", "the list is empty"),
    ):
        with pytest.raises(DataError, match=message):
            declared_names(value, base)


def test_root_of_the_images(tmp_path):
    source = tmp_path / "a.csv"
    assert find_root(source, ["a.jpg"], None) == tmp_path
    write_image(tmp_path / "images" / "a.jpg", size=(8, 8))
    assert find_root(source, ["a.jpg"], None) == tmp_path / "images"
    assert find_root(source, ["z.jpg"], None) == tmp_path
    assert find_root(source, ["a.jpg"], "images") == tmp_path / "images"
    assert find_root(source, [], tmp_path / "no") == tmp_path / "no"
    write_image(tmp_path / "a.jpg", size=(8, 8))
    with pytest.raises(DataError, match=r"a\.csv: both .* have image files; add -o root=DIR"):
        find_root(source, ["a.jpg"], None)


def test_divide_takes_an_empty_word_as_train(tmp_path):
    data = divide(dataset(tmp_path, 3), ["", "train", "valid"], {"a": 1})
    assert (len(data.train), len(data.test), len(data.valid), data.notes) == (2, 0, 1, {"a": 1})
