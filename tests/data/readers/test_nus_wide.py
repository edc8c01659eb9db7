import shutil

import numpy as np
import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.data.readers.nus_wide import load_nus_wide
from sarb.data.readers.nus_wide_column import read_column
from sarb.errors import ConfigError, DataError
from tests.data.formats import write_example

pytestmark = pytest.mark.filterwarnings("ignore:.*(the official set has|read as unknown)")
ALL = [[1, -1, 1], [-1, 1, 1], [-1, 0, -1], [-1, 1, -1], [1, 1, -1]]


@pytest.fixture
def home(tmp_path):
    """Return the folder of the example set."""
    write_example("nus_wide", tmp_path)
    return tmp_path


def labels(root, concept, split="Train"):
    """Return the path of a label file."""
    return root / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_{split}.txt"


def test_damaged_line(home):
    with pytest.raises(DataError) as error:
        load(f"nus_wide:{home}")
    assert f"{labels(home, 'lake')}, line 3: value '-1130179'; expected 1 or 0" in str(error.value)
    assert "-o damaged=unknown" in str(error.value)
    with pytest.warns(DataWarning, match=r"Labels_lake_Train.txt, line 3: value '-1130179'.*read as unknown"):
        data = load_nus_wide(home, damaged="unknown")
    assert data.train.labels.values.tolist() == ALL[:3]
    assert (data.notes["damaged_entries"], data.notes["test_split"]) == (1, "TestImagelist.txt")
    assert (data.test.source, data.test.line(1)) == (home / "ImageList" / "TestImagelist.txt", 2)
    with pytest.raises(ConfigError, match="value of option damaged"):
        load_nus_wide(home, damaged="absent")


def test_another_encoding_is_not_damage(home):
    labels(home, "sky").write_text("1\n-1\n-1\n")
    with pytest.raises(DataError, match=r"Labels_sky_Train.txt") as error:
        load(f"nus_wide:{home}", damaged="unknown")
    assert "line 2: value '-1'; expected 1 or 0" in str(error.value)
    assert "line 3: value '-1'; expected 1 or 0" in str(error.value)
    assert "-o damaged" not in str(error.value)


def test_lengths(home):
    labels(home, "sky").write_text("1\n1\n")
    labels(home, "airport", "Test").write_text("0\n\n1\n")
    with gather() as findings:
        data = load_nus_wide(home, damaged="unknown")
    lists = home / "ImageList"
    assert [(finding.file, finding.message) for finding in findings.of("error")] == [
        (str(labels(home, "sky")), f"has 2 lines, but {lists / 'TrainImagelist.txt'} has 3 images"),
        (
            str(labels(home, "airport", "Test")),
            f"has 3 lines, but {lists / 'TestImagelist.txt'} has 2 images",
        ),
    ]
    assert data.train.labels.values[:, 2].tolist() == [0, 0, 0]


def test_a_blank_line_counts(home):
    labels(home, "sky").write_text("1\n\n0\n\n\n")
    with pytest.raises(DataError, match=r"Labels_sky_Train.txt, line 2: value ''"):
        load(f"nus_wide:{home}")


def test_spaces_and_windows_lines(home):
    labels(home, "sky").write_bytes(b"1 \r\n 1\r\n0")
    assert load_nus_wide(home, damaged="unknown").train.labels.values.tolist() == ALL[:3]


def test_all_labels_with_and_without_lists(home):
    shutil.rmtree(home / "Groundtruth" / "TrainTestLabels")
    (home / "Groundtruth" / "AllLabels").rename(home / "Groundtruth" / "AllLabels81")
    data = load_nus_wide(home, damaged="unknown")
    assert (data.train.labels.values.tolist(), data.test.labels.values.tolist()) == (ALL[:3], ALL[3:])
    (home / "ImageList" / "TestImagelist.txt").write_text("actor\\0001_2124494179.jpg\n")
    with gather() as findings:
        load_nus_wide(home, damaged="unknown")
    assert [(finding.kind, finding.line) for finding in findings.of("error")] == [
        ("split-overlap", 1),
        ("no-split", 4),
        ("no-split", 5),
    ]
    (home / "ImageList" / "TestImagelist.txt").unlink()
    with pytest.warns(DataWarning, match="the official test split is not known"):
        data = load_nus_wide(home, damaged="unknown")
    assert (data.train.labels.values.tolist(), len(data.test)) == (ALL, 0)
    assert data.notes["labels"] == "AllLabels"


def test_one_list_needs_an_order(home):
    shutil.rmtree(home / "Groundtruth" / "AllLabels")
    for split in ("Train", "Test"):
        (home / "ImageList" / f"{split}Imagelist.txt").unlink()
    with pytest.raises(DataError) as error:
        load(f"nus_wide:{home}", damaged="unknown")
    assert "-o order=train_first: the first 3 images" in str(error.value)
    data = load(f"nus_wide:{home}", damaged="unknown", order="train_first")
    assert (data.train.labels.values.tolist(), data.test.labels.values.tolist()) == (ALL[:3], ALL[3:])
    assert data.test.line(0) == 4
    (home / "ImageList" / "Imagelist.txt").write_text("actor\\0001_2124494179.jpg\n")
    with pytest.raises(
        DataError, match=r"Imagelist.txt: has 1 image, but the labels have 3 lines for train and 2 for test"
    ):
        load_nus_wide(home, order="train_first")
    (home / "ImageList" / "Imagelist.txt").unlink()
    with pytest.raises(
        DataError, match=r"no TrainImagelist.txt and no TestImagelist.txt.*-o image_list=FILE"
    ):
        load_nus_wide(home)


def test_flat_copy_with_images_in_one_folder(home):
    for path in [*home.rglob("*.txt")]:
        if "AllLabels" not in path.parts:
            shutil.move(path, home / path.name)
    for folder in ("Groundtruth", "ImageList", "ConceptsList"):
        shutil.rmtree(home / folder)
    (home / "images").mkdir()
    for path in [*home.rglob("*.jpg")]:
        shutil.move(path, home / "images" / path.name)
    shutil.rmtree(home / "Flickr")
    data = load(f"nus_wide:{home}", damaged="unknown")
    assert data.train.labels.values.tolist() == ALL[:3]
    assert data.train.labels.paths[0] == "0001_2124494179.jpg"
    shutil.move(home / "images", home / "pictures")
    assert load(f"nus_wide:{home}", damaged="unknown", root="pictures").train.labels == data.train.labels


def test_concepts(home):
    (home / "ConceptsList" / "Concepts81.txt").write_text("sky\nlake\nairport\n")
    data = load_nus_wide(home, damaged="unknown")
    assert data.categories == ("sky", "lake", "airport")
    assert data.train.labels.values.tolist() == [row[::-1] for row in ALL[:3]]
    (home / "ConceptsList" / "Concepts81.txt").write_text("sky\nlake\nairprt\nsky\n")
    with gather() as findings:
        load_nus_wide(home, damaged="unknown")
    kinds = [finding.kind for finding in findings.of("error")]
    assert kinds == ["duplicate-name", *2 * ["missing-category", "unknown-category"]]
    assert "no file Labels_airprt_Train.txt" in findings.of("error")[1].message
    assert "Did you mean 'airprt'?" in findings.of("error")[2].message
    (home / "ConceptsList" / "Concepts81.txt").unlink()
    assert load_nus_wide(home, damaged="unknown").categories == ("airport", "lake", "sky")


def test_an_image_in_both_lists_and_a_missing_file(home):
    (home / "ImageList" / "TestImagelist.txt").write_text(
        "actor\\0001_2124494179.jpg\nlake\\0005_2124494181.jpg\n"
    )
    with pytest.raises(
        DataError, match=r"'actor/0001_2124494179.jpg' occurs twice.*once in train, once in test"
    ):
        load(f"nus_wide:{home}", damaged="unknown")
    labels(home, "sky").unlink()
    with pytest.raises(DataError, match=r"no file Labels_sky_Train.txt"):
        load(f"nus_wide:{home}", damaged="unknown")


def test_two_copies_of_a_file(home):
    shutil.copy(labels(home, "sky"), home / "Labels_sky_Train.txt")
    with pytest.raises(DataError, match=r"Labels_sky_Train.txt: there is also .*; keep only one of them"):
        load_nus_wide(home)


def test_official_sizes(home):
    with pytest.warns(DataWarning) as warned:
        load_nus_wide(home, damaged="unknown")
    texts = [str(warning.message) for warning in warned]
    lists = home / "ImageList"
    assert any(f"{lists / 'TrainImagelist.txt'}: NUS-WIDE train has 3 images" in text for text in texts)
    assert any(f"{lists / 'TestImagelist.txt'}: NUS-WIDE test has 2 images" in text for text in texts)
    assert any("Concepts81.txt: 3 concepts, but the official set has 81" in text for text in texts)


def test_not_a_copy_of_the_set(home, tmp_path):
    with pytest.raises(DataError, match="not a folder"):
        load_nus_wide(home / "ImageList" / "Imagelist.txt")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="contains no label files"):
        load_nus_wide(empty)


def test_a_long_column_is_read_whole(tmp_path):
    codes = np.random.RandomState(0).randint(0, 2, 161_789)
    path = tmp_path / "Labels_sky_Train.txt"
    path.write_text("".join(f"{code}\n" for code in codes))
    values, strange = read_column(path)
    assert strange == {}
    assert np.array_equal(values, np.where(codes == 1, 1, -1))
