import json

import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")

LISTS = {"train_list": "train.txt", "test_list": "test.txt", "label_file": "labels.json"}
PUBLISHED = {"train.txt": "train_list_500.txt", "test.txt": "test_list_500.txt"}


@pytest.fixture
def published(tmp_path):
    for number in (1, 2, 3):
        write_image(tmp_path / "VG_100K" / f"{number}.jpg", number, (8, 8))
    (tmp_path / "train.txt").write_text("3.jpg\n1.jpg\n")
    (tmp_path / "test.txt").write_text("2.jpg\n")
    (tmp_path / "labels.json").write_text('{"1.jpg": [0, 2],\n"2.jpg": [1, 1],\n"3.jpg": []}')
    (tmp_path / "names.txt").write_text("cat\nhot dog\ntree\n")
    return tmp_path


def test_lists_by_option(published):
    data = load(f"vg:{published}", **LISTS, names="names.txt")
    assert data.categories == ("cat", "hot dog", "tree")
    assert data.train.labels.values.tolist() == [[-1, -1, -1], [1, -1, 1]]
    assert data.test.labels.values.tolist() == [[-1, 1, -1]]
    assert data.train.labels.paths == ("VG_100K/3.jpg", "VG_100K/1.jpg")
    assert data.notes == {"lists": ["train.txt", "test.txt"], "label_file": "labels.json", "beyond": "refuse"}
    assert load(f"vg:{published}", **LISTS).categories[199] == "category 199"


def rename(folder, categories):
    for name, official in PUBLISHED.items():
        (folder / name).rename(folder / official)
    (folder / "labels.json").rename(folder / f"vg_category_{categories}_labels_index.json")


def test_published_names_are_found_and_their_numbers_checked(published):
    rename(published, 200)
    with pytest.warns(DataWarning) as found:
        data = load(f"vg:{published}")
    assert (len(data.train), len(data.test), len(data.categories)) == (2, 1, 200)
    train, test = (str(warning.message) for warning in found)
    assert (
        train.startswith(f"{published}/train_list_500.txt: is not the published training list")
        and "82,904" in train
    )
    assert test.startswith(f"{published}/test_list_500.txt: ") and "1 images (documented: 10,000)" in test
    # with the official files there, the set is built
    (published / "objects.json").write_text("[]")
    with pytest.raises(DataError, match=r"image_data\.json: cannot be read"):
        load(f"vg:{published}")


def test_the_label_file_of_as_many_categories_is_taken(published):
    rename(published, 200)
    (published / "vg_category_500_labels_index.json").write_text('{"1.jpg": [499], "2.jpg": [], "3.jpg": []}')
    assert load(f"vg:{published}").notes["label_file"] == "vg_category_200_labels_index.json"
    data = load(f"vg:{published}", categories=500)
    assert (
        data.notes["label_file"] == "vg_category_500_labels_index.json"
        and data.train.labels.values[1, 499] == 1
    )


def test_the_first_200_categories_of_500(published):
    (published / "labels.json").write_text('{"1.jpg": [0, 200, 499],\n"2.jpg": [199, 201],\n"3.jpg": []}')
    rename(published, 500)
    with pytest.raises(DataError) as error:
        load(f"vg:{published}")
    text = str(error.value)
    assert (
        f"{published}/vg_category_500_labels_index.json, line 1: 3 labels have numbers from 200 to 499."
        in text
    )
    assert "\n  -o categories=500: keep all categories" in text
    assert "\n  -o beyond=drop: keep the first 200 categories and drop these labels" in text
    dropped = load(f"vg:{published}", beyond="drop")
    assert [
        (dropped.train.labels.values[1] == 1).nonzero()[0].tolist(),
        dropped.test.labels.values[0, 199],
    ] == [[0], 1]
    whole = load(f"vg:{published}", categories=500)
    assert (whole.train.labels.values[1] == 1).nonzero()[0].tolist() == [0, 200, 499]
    with pytest.raises(ConfigError, match="Did you mean 'drop'"):
        load(f"vg:{published}", beyond="dropp")


def test_options_that_belong_together(published):
    with pytest.raises(ConfigError) as error:
        load(f"vg:{published}", train_list="train.txt")
    assert error.value.problems == [
        f"published lists also need option {name}" for name in ("test_list", "label_file")
    ]
    with pytest.raises(ConfigError, match="option 'names' needs published lists: add option 'train_list'"):
        load(f"vg:{published}", names="names.txt")
    (published / "names.txt").write_text("cat\ntree\ncat\n")
    with pytest.raises(DataError, match=r"names\.txt, line 3: category 'cat' occurs twice, on lines 1 and 3"):
        load(f"vg:{published}", **LISTS, names="names.txt")


def test_all_faults_at_once_and_the_rest_is_read(published):
    (published / "train.txt").write_text("3.jpg\n9.jpg\n1.jpg\n3.jpg\n")
    (published / "labels.json").write_text(
        '{"1.jpg": [0, 2],\n"2.jpg": [1, -1],\n"3.jpg": [1],\n"4.jpg": "01",\n"5.jpg": [true],\n"6.jpg": [1e0]}'
    )
    with pytest.raises(DataError, match=r"labels\.json"):
        load(f"vg:{published}", **LISTS, categories=3)
    with gather() as found:
        data = load(f"vg:{published}", **LISTS, categories=3)
    errors = [finding for finding in found.of("error") if finding.kind != "missing-file"]
    assert [(finding.file.rsplit("/", 1)[-1], finding.line, finding.message) for finding in errors] == [
        ("labels.json", 2, "image '2.jpg': [1, -1]; expected a list of category numbers from 0"),
        ("labels.json", 4, "image '4.jpg': '01'; expected a list of category numbers from 0"),
        ("labels.json", 5, "image '5.jpg': [True]; expected a list of category numbers from 0"),
        ("labels.json", 6, "image '6.jpg': [1.0]; expected a list of category numbers from 0"),
        ("train.txt", 2, "image '9.jpg' has no labels in labels.json"),
        ("train.txt", 4, "file_name 'VG_100K/3.jpg' occurs twice, on lines 1 and 4"),
    ]
    assert data.train.labels.values.tolist() == [[-1, 1, -1], [0, 0, 0], [1, -1, 1]]
    assert data.test.labels.values.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "line 1, column 1: not valid JSON: expected a JSON object, not an array"),
        ('{"a":\n}', "line 2, column 1"),
        ('{"1.jpg": [0],\n"1.jpg": [1]}', "line 2, column 8: not valid JSON: key '1.jpg' occurs twice"),
        ("", "line 1, column 1"),
    ],
)
def test_bad_label_files(published, text, message):
    (published / "labels.json").write_text(text)
    with pytest.raises(DataError, match=message):
        load(f"vg:{published}", **LISTS)


def test_an_empty_list(published):
    (published / "test.txt").write_text("\n")
    (published / "labels.json").write_text(json.dumps({"1.jpg": [0], "3.jpg": []}))
    with pytest.raises(DataError, match=r"test\.txt: contains no image"):
        load(f"vg:{published}", **LISTS)
