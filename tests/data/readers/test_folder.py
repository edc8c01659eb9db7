import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.data.readers.folder import load_folder
from sarb.errors import DataError


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes files, path -> text, and returns their folder."""

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def names(data):
    return {split: part.labels.paths for split, part in data.splits.items()}


def test_one_file_and_its_folder(folder):
    place = folder({"metadata.csv": "file_name,cat,dog\na.png,yes,no\nb/c.png,?,yes\n"})
    for given in (place, place / "metadata.csv"):
        data = load_folder(given)
        assert data.train.root == place
        assert names(data) == {"train": ("a.png", "b/c.png")}
        assert data.train.labels.values.tolist() == [[1, -1], [0, 1]]
        assert data.name == place.name
    assert load_folder(place, root=place / "elsewhere").train.root == place / "elsewhere"


@pytest.mark.parametrize(
    "words", [("train", "test", "validation"), ("training", "eval", "dev"), ("TRAIN", "testing", "val")]
)
def test_a_folder_per_split(folder, words):
    train, test, valid = words
    place = folder(
        {
            f"{train}/metadata.csv": "file_name,cat,dog\na.png,yes,no\n",
            f"{test}/metadata.jsonl": '{"file_name": "a.png", "dog": "yes", "cat": "no"}\n',
            f"{valid}/metadata.csv": "file_name,split,cat,dog\nb.png,valid,?,yes\n",
        }
    )
    data = load_folder(place)
    assert names(data) == {"train": ("a.png",), "valid": ("b.png",), "test": ("a.png",)}
    assert [part.root.name for part in data.splits.values()] == [train, valid, test]
    assert data.test.labels.values.tolist() == [[-1, 1]]
    assert data.categories == data.test.categories == ("cat", "dog")
    assert data.notes["test_split"] == "folders"
    assert data.valid.source == place / valid / "metadata.csv"


def test_only_a_training_folder(folder):
    data = load_folder(folder({"train/metadata.csv": "file_name,cat\na.png,yes\n"}))
    assert (len(data.train), len(data.test), data.valid) == (1, 0, None)
    rows = "".join(f"{number}.png,yes\n" for number in range(10))
    data = load(folder({"train/metadata.csv": f"file_name,cat\n{rows}"}), check_files=False)
    assert (len(data.train), len(data.test)) == (8, 2)


def test_one_file_for_all_splits(folder):
    place = folder({"metadata.csv": "file_name,cat\ntrain/a.png,yes\nVal/b.png,no\nevaluation/c.png,no\n"})
    assert names(load_folder(place)) == {
        "train": ("train/a.png",),
        "valid": ("Val/b.png",),
        "test": ("evaluation/c.png",),
    }
    place = folder({"metadata.csv": "file_name,cat\ntrain/a.png,yes\nb.png,no\n"})
    assert names(load_folder(place)) == {"train": ("train/a.png", "b.png")}
    place = folder({"metadata.csv": "file_name,split,cat\ntest/a.png,train,yes\ntest/b.png,test,no\n"})
    assert names(load_folder(place)) == {"train": ("test/a.png",), "test": ("test/b.png",)}


def test_splits_with_different_categories(folder):
    place = folder(
        {
            "train/metadata.csv": "file_name,cat,dog\na.png,yes,no\n",
            "test/metadata.csv": "file_name,cat,dgo\na.png,yes,no\n",
        }
    )
    files = r"test/metadata\.csv: has different categories than .*train/metadata\.csv"
    expected = rf"{files}; only here: 'dgo'; missing here: 'dog'"
    with pytest.raises(DataError, match=expected):
        load_folder(place)


def test_faults_name_their_own_file(folder):
    place = folder(
        {
            "train/metadata.csv": "file_name,cat\na.png,yes\nb.png,maybe\n",
            "test/metadata.csv": "file_name,split,cat\na.png,train,yes\na.png,test,no\n",
        }
    )
    with pytest.raises(DataError) as error:
        load(f"folder:{place}", check_files=False)
    text = str(error.value)
    assert "train/metadata.csv: 3 problems" in text
    assert "line 3, column 'cat': value 'maybe'" in text
    assert f"{place}/test/metadata.csv, line 2: the split column says train, but the folder is test" in text
    assert f"{place}/test/metadata.csv, line 3, column 'file_name': file_name 'a.png' occurs twice" in text
    with gather() as findings:
        assert len(load_folder(place).test) == 1
    assert findings.count("error") == 3


def test_numbers_need_an_encoding(folder):
    place = folder({"metadata.jsonl": '{"file_name": "a.png", "cat": 1}\n'})
    with pytest.raises(
        DataError, match=r"metadata\.jsonl: declare what the label codes mean(.|\n)*-o encoding=binary"
    ):
        load_folder(place)
    assert load_folder(place, encoding="binary").train.labels.values.tolist() == [[1]]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            ["metadata.csv", "metadata.jsonl"],
            r"contains metadata\.csv and metadata\.jsonl; pass the file to read",
        ),
        (
            ["train/metadata.csv", "train/metadata.parquet"],
            r"train: contains metadata\.csv and metadata\.parquet",
        ),
        (
            ["metadata.csv", "train/metadata.csv"],
            r"contains metadata\.csv and train/metadata\.csv; pass the file",
        ),
        (
            ["train/metadata.csv", "val/metadata.csv", "dev/metadata.csv"],
            r"dev/ and val/ both look like the valid split",
        ),
        (["test/metadata.csv"], r"contains none of metadata\.csv, .*, and neither does its folder train"),
        (["data.csv"], r"contains none of metadata\.csv"),
    ],
)
def test_which_file(folder, files, message):
    place = folder(dict.fromkeys(files, "file_name,cat\na.png,yes\n"))
    with pytest.raises(DataError, match=message):
        load_folder(place)


def test_a_split_without_metadata_is_said(folder):
    place = folder({"train/metadata.csv": "file_name,cat\na.png,yes\n", "test/a.png": ""})
    with pytest.warns(DataWarning, match="folder test has no metadata file, so its images are not read"):
        load_folder(place)


def test_root_cannot_apply_to_split_folders(folder):
    with pytest.raises(DataError, match="option root does not apply"):
        load_folder(folder({"train/metadata.csv": "file_name,cat\na.png,yes\n"}), root="x")
