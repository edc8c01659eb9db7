"""Statistics of a data set, exact on hand-made labels, the same as slow loops on random ones."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from rich.cells import cell_len

from sarb.data.check import stats as module
from sarb.data.check.stats import stats
from sarb.data.dataset import Data, Dataset
from sarb.errors import DataError
from sarb.labels import LabelMatrix
from sarb.workflows.statistics import save_stats

CATEGORIES = ["cat", "dog", "car", "kite"]
TRAIN = [[1, 1, -1, 0], [1, 0, -1, 0], [1, 1, 1, 0], [0, 0, 0, 0], [-1, 1, -1, 0]]
TEST = [[1, -1, -1, -1]]


def make(train, test=(), valid=None, categories=CATEGORIES):
    def split(rows):
        return Dataset(LabelMatrix(np.array(rows, int).reshape(-1, len(categories)), categories))

    return Data(split(train), split(test), None if valid is None else split(valid), name="hand made")


@pytest.fixture
def found():
    return stats(make(TRAIN, TEST))


def test_counts_per_category(found):
    train = found.splits[0]
    assert [split.name for split in found.splits] == ["train", "test"]
    assert train.present.tolist() == [3, 3, 1, 0]
    assert train.absent.tolist() == [1, 0, 3, 0]
    assert train.unknown.tolist() == [1, 2, 1, 5]
    assert train.rate[:3].tolist() == [0.75, 1.0, 0.25] and math.isnan(train.rate[3])


def test_counts_per_image(found):
    train = found.splits[0]
    assert train.images == 5 and train.known_share == 11 / 20
    assert (train.mean_positives, train.median_positives, train.max_positives) == (7 / 5, 1.0, 3)
    assert train.estimated_positives == 2.0  # 0.75 + 1 + 0.25, nothing for kite
    assert train.by_positives.tolist() == [1, 2, 1, 1]
    assert (train.without_known, train.without_positive) == (1, 1)
    # known per image: 3, 2, 3, 0, 3 of 4
    assert train.share_histogram.tolist() == [1, 0, 0, 0, 0, 1, 0, 3, 0, 0]
    assert found.splits[1].share_histogram.tolist() == [0] * 9 + [1]


def test_bins_do_not_depend_on_rounding():
    rows = [[1] * known + [0] * (10 - known) for known in range(11)]
    assert stats(make(rows, categories=list("abcdefghij"))).main.share_histogram.tolist() == [1] * 9 + [2]


def test_median_of_an_even_number_of_images():
    assert stats(make([[1, 1, 1, 0], [1, 1, 0, 0]])).main.median_positives == 2.5


def test_pairs_with_their_support(found):
    pairs = {(pair.given, pair.other): pair for pair in found.pairs}
    assert set(pairs) == {
        ("cat", "dog"),
        ("dog", "cat"),
        ("cat", "car"),
        ("dog", "car"),
        ("car", "cat"),
        ("car", "dog"),
    }
    dog = pairs["cat", "dog"]  # in three images with a cat a dog is known in two
    assert (dog.both, dog.support, dog.probability, dog.overall) == (2, 2, 1.0, 1.0)
    cat = pairs["dog", "cat"]
    assert (cat.both, cat.support, cat.overall) == (2, 3, 0.75)
    assert (pairs["cat", "car"].both, pairs["cat", "car"].support) == (1, 3)


def test_one_of_one_does_not_lead():
    rows = [[1, 1, 0, 0]] * 30 + [[1, -1, 0, 0]] + [[0, 0, 1, 1]]
    assert [(pair.given, pair.other) for pair in stats(make(rows)).pairs[:2]] == [
        ("dog", "cat"),
        ("cat", "dog"),
    ]


def test_graph_is_that_of_the_label_matrix():
    random = np.random.default_rng(3)
    labels = LabelMatrix(random.integers(-1, 2, (60, 9)) * (random.random((60, 9)) < 0.4), list("abcdefghi"))
    together = stats(Data(Dataset(labels), Dataset(labels.take([])))).together
    order = together.order
    assert np.array_equal(together.graph(), labels.cooccurrence()[np.ix_(order, order)])
    assert np.array_equal(together.graph(4), labels.cooccurrence()[np.ix_(order[:4], order[:4])])
    assert labels.positives[order].tolist() == sorted(labels.positives, reverse=True)


def test_parts_add_up(monkeypatch):
    values = np.random.default_rng(0).integers(-1, 2, (50, 7))
    monkeypatch.setattr(module, "CHUNK", 20)  # two images at a time
    split = stats(make(values, categories=list("abcdefg"))).main
    assert split.present.tolist() == [sum(row[c] == 1 for row in values) for c in range(7)]
    assert split.absent.tolist() == [sum(row[c] == -1 for row in values) for c in range(7)]
    assert split.by_positives.sum() == split.by_known.sum() == 50
    assert split.by_known.tolist() == [sum(np.count_nonzero(row) == k for row in values) for k in range(8)]


def test_only_frequent_categories_are_paired(monkeypatch):
    monkeypatch.setattr(module, "PAIRED_CATEGORIES", 2)
    found = stats(make(TRAIN))
    assert found.together.order.tolist() == [0, 1] and found.together.both.tolist() == [[3, 2], [2, 3]]
    assert "pairs were counted among the 2 most frequent of 4 categories" in str(found)
    assert json.loads(found.to_json())["cooccurrence"]["categories_counted"] == 2


def test_json_holds_everything(found, tmp_path):
    stored = json.loads(found.save(tmp_path / "new" / "stats.json").read_text(encoding="utf-8"))
    assert stored == json.loads(found.to_json())
    assert save_stats(found, tmp_path / "s.json").read_text(encoding="utf-8") == found.to_json()
    train = stored["splits"]["train"]
    assert train["known_positives_per_image"] == {
        "mean": 1.4,
        "median": 1.0,
        "max": 3,
        "images_by_count": [1, 2, 1, 1],
    }
    assert train["per_category"][0] == {
        "category": "cat",
        "present": 3,
        "absent": 1,
        "unknown": 1,
        "known_share": 0.8,
        "rate": 0.75,
    }
    assert train["per_category"][3]["rate"] is None
    assert train["categories_without_known_positive"] == ["kite"]
    assert train["categories_without_known_negative"] == ["dog", "kite"]
    assert len(stored["cooccurrence"]["pairs"]) == 6


def test_text(found):
    lines = str(found).splitlines()
    assert lines[0] == "hand made: 4 categories"
    assert "known labels                       55.0 %  100.0 %" in lines
    assert "all positives per image, estimate    2.00     1.00" in lines
    assert "category (train)  present  absent   known     rate  in test" in lines
    assert "cat                     3       1  80.0 %   75.0 %        1" in lines
    assert "kite                    0       0   0.0 %      n/a        0" in lines
    assert "- train: no known positive for kite" in lines
    assert "- train: no known negative for dog, kite" in lines
    assert "- test: no known positive for dog, car, kite" in lines


def test_text_of_many_categories_fits_eighty_columns():
    names = [f"日本語のとても長い名前 {index} {'x' * 60}" for index in range(99)] + ["\x1b[31mred\nline"]
    values = np.ones((1200, 100), int)
    text = str(stats(make(values, values, values, names)))
    tables = text[: text.index("\n- ")].splitlines()
    assert max(map(cell_len, tables)) == 80
    assert "… 76 more …" in text and "\x1b" not in text and "�[31mred line" in text
    assert sum(line.endswith("  1,200       0  100.0 %  100.0 %     1,200    1,200") for line in tables) == 24


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ([], "train has no images"),
        ([[0, 0, 0, 0]], "train has no known labels"),
        ([[1, 0, 0, 0]], "train: no known positive for dog, car, kite"),
    ],
)
def test_little_data(train, sentence, tmp_path):
    found = stats(make(train))
    assert f"- {sentence}" in str(found) and "- test has no images" in str(found)
    assert found.pairs == [] and "nan" not in str(found).lower() + found.to_json().lower()
    json.loads(found.save(tmp_path / "stats.json").read_text(encoding="utf-8"))


def test_one_category():
    found = stats(make([[1], [-1], [0]], categories=["cat"]))
    assert found.pairs == [] and found.main.rate.tolist() == [0.5]
    assert found.main.share_histogram.tolist() == [1] + [0] * 8 + [2]


def test_without_training_images_the_next_split_is_looked_at():
    found = stats(make([], TEST, [[1, 1, 0, 0]]))
    assert found.main.name == "valid" and found.pairs[0].given == "cat"


def test_splits_with_other_categories_are_refused():
    data = Data(Dataset(LabelMatrix([[1]], ["cat"])), Dataset(LabelMatrix([[1]], ["dog"])), name="odd")
    with pytest.raises(DataError, match="odd: the splits train and test have different categories"):
        stats(data)


def test_another_suffix_is_refused(found, tmp_path):
    with pytest.raises(DataError, match=r"written as \.html or \.json"):
        save_stats(found, tmp_path / "stats.txt")
    with pytest.raises(DataError, match=r"saved as \.json"):
        found.save(tmp_path / "stats.html")
    assert not list(tmp_path.iterdir())


def test_names_that_utf8_cannot_spell_are_still_written(tmp_path):
    found = stats(make([[1]], categories=["caf\udce9"]))
    assert "caf?" in found.save(tmp_path / "stats.json").read_text(encoding="utf-8")


def test_import_is_light():
    heavy = ("torch", "matplotlib", "sklearn", "rich")
    code = f"import sarb.data.check.stats, sys; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
