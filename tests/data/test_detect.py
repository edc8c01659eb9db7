import pytest

from sarb.data import DATASETS, load
from sarb.data.detect import HEADERS, LAYOUTS, SUFFIXES, detect
from sarb.errors import DataError


def told(path):
    name, place = detect(str(path), DATASETS)
    assert place == str(path)
    return name


def test_every_mark_names_a_reader():
    assert {*LAYOUTS.values(), *SUFFIXES.values(), *HEADERS.values()} <= set(DATASETS)


@pytest.mark.parametrize(("mark", "name"), LAYOUTS.items())
def test_folders_are_told_by_their_official_files(tmp_path, mark, name):
    path = tmp_path / mark
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch() if path.suffix else path.mkdir()
    assert told(tmp_path) == name


CHEXPERT = "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Edema"


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("a.csv", "file_name,cat,dog", "table"),
        ("a.csv", "file_name,split,labels,cat", "table"),
        ("a.csv", "fname,labels,is_valid", "list"),
        ("a.csv", "fname;labels", "list"),
        ("a.csv", '\ufeff"fname","labels"\r\n', "list"),
        ("a.csv", "file_name,labels", "list"),
        ("a.csv", "Bild;labels", "list"),
        ("a.csv", "image,labels,is_valid", "list"),
        ("a.csv", "image,labels,absent_labels,split", "list"),
        ("a.csv", "image,labels,cat", "table"),
        ("a.csv", "file_name,labels,split", "list"),
        ("a.tsv", "file_name\tcat", "table"),
        ("a.csv", CHEXPERT, "chexpert"),
        ("a.csv", "ImageID,Source,LabelName,Confidence", "open_images"),
        ("a.csv", "", "table"),
        ("a.parquet", "", "table"),
        ("a.jsonl", "", "table"),
        ("a.npy", "", "npy"),
        ("a.xml", "", "cvat"),
        ("a.json", '{"info": {}, "images": []', "coco"),
        ("a.json", '{"images": [{"neg_category_ids": []', "lvis"),
        ("a.json", '\n[{"id": 1, "annotations": [], "data": {"image": "x.jpg"}}]', "label_studio"),
    ],
)
def test_files_are_told_by_suffix_and_head(tmp_path, file, text, name):
    (tmp_path / file).write_text(text)
    assert told(tmp_path / file) == name


def test_a_chexpert_folder(tmp_path):
    (tmp_path / "train.csv").write_text(CHEXPERT)
    assert told(tmp_path) == "chexpert"
    (tmp_path / "train.csv").write_text("file_name,cat")
    with pytest.raises(DataError, match=r"not in a format that sarb knows\. It contains train\.csv: try "):
        told(tmp_path)


@pytest.mark.parametrize(
    ("file", "text"), [("a.json", "[1, 2]"), ("a.json", "{}"), ("a.txt", "file_name,cat")]
)
def test_what_cannot_be_told(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    with pytest.raises(DataError, match=r"cannot tell what this file is; name its reader, such as table:"):
        told(tmp_path / file)


def test_two_layouts_in_one_folder(tmp_path):
    (tmp_path / "objects.json").touch()
    (tmp_path / "metadata.csv").touch()
    with pytest.raises(DataError, match=r"could be folder or vg; say which: folder:.* or vg:"):
        told(tmp_path)


def test_a_slip_in_the_path_gets_the_near_one(tmp_path, monkeypatch):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "labels.csv").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        DataError, match=r"photo/labels\.csv: no such file.* Did you mean 'photos/labels\.csv'\?"
    ):
        load("photo/labels.csv")
    with pytest.raises(DataError, match=r"Did you mean 'table:photos/labels\.csv'\?"):
        load("table:photo/labels.csv")
