"""Which images, labels and categories runs are compared on, and what is said about them."""

import numpy as np
import pytest

import sarb
from sarb.errors import SarbError
from sarb.runs.folder import RunFolder
from sarb.workflows.comparison import compare_session
from tests.documentation.tools import hurry, run

CATEGORIES = ["cat", "dog", "owl"]


def make(tmp_path, name, images, categories=CATEGORIES, noise=0.1, values=None):
    """A run folder with the scores and labels of these test images."""
    random = np.random.RandomState(len(name))
    truth = np.random.RandomState(0).choice([-1, 1], (100, len(CATEGORIES))).astype(np.int8)
    columns = [CATEGORIES.index(category) if category in CATEGORIES else 0 for category in categories]
    values = truth[list(images)][:, columns] if values is None else values
    paths = [str(tmp_path / f"{number}.jpg") for number in images]
    folder = RunFolder(tmp_path / name)
    folder.path.mkdir()
    scores = sarb.Scores(values + noise * random.standard_normal(values.shape), categories, paths)
    folder.write_test(scores, sarb.LabelMatrix(values, categories, paths), {"mAP": 1.0})
    return str(folder.path)


def test_the_same_images(tmp_path):
    found = sarb.compare([make(tmp_path, "a", range(60)), make(tmp_path, "b", range(60), noise=5)])
    assert found.notes[0] == "Compared on 60 test images and 3 categories, 180 known labels."
    assert "95 known positives" in found.notes[1] and len(found.notes) == 2
    assert [entry.name for entry in found.entries] == ["a", "b"] and found.entries[1].verdict == "worse"


def test_only_common_images_and_categories_count_in_any_order(tmp_path):
    first = make(tmp_path, "a", range(60))
    second = make(tmp_path, "b", range(90, 20, -1), ["owl", "fox", "cat"])
    found = sarb.compare([first, second], names=["one", "two"])
    assert found.labels.categories == ("cat", "owl") and len(found.labels) == 39
    assert found.labels.paths == tuple(str(tmp_path / f"{number}.jpg") for number in range(21, 60))
    assert found.notes[0] == "Compared on 39 test images and 2 categories, 78 known labels."
    assert "one 60, two 70" in found.notes[2] and "one 3, two 3" in found.notes[3]
    stored = RunFolder(second).scores
    row = stored.paths.index(found.labels.paths[0])
    assert found.entries[1].report.scores.logits[0].tolist() == stored.logits[row][[2, 0]].tolist()


def test_labels_of_two_tables_are_put_together(tmp_path):
    ones = np.ones((3, 3), np.int8)
    first = ones * [[1, 0, 1]]
    second = ones * [[1, -1, -1]]
    runs = [make(tmp_path, "a", range(3), values=first), make(tmp_path, "b", range(3), values=second)]
    found = sarb.compare(runs)
    assert found.labels.values.tolist() == [[1, -1, 0]] * 3
    assert "3 labels are left out" in found.notes[-1]


def test_what_cannot_be_compared_is_one_clear_error(tmp_path):
    first = make(tmp_path, "a", range(10))
    cases = {
        "at least two runs, got 1": [first],
        "given twice": [first, str(tmp_path / "." / "a")],
        "no test image in common .*data=…": [first, make(tmp_path, "b", range(20, 30))],
        "no category in common": [first, make(tmp_path, "c", range(10), ["x", "y"])],
        "Did you mean": [first, str(tmp_path / "aa")],
    }
    for words, runs in cases.items():
        with pytest.raises(SarbError, match=words):
            sarb.compare(runs)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SarbError, match=r"has no scores of test images; .*data=…"):
        sarb.compare([first, str(empty)])
    with pytest.raises(SarbError, match="-o and --split need the data"):
        compare_session([tmp_path / "a", empty], None, {"encoding": "binary"}, None, None)
    with pytest.raises(SarbError, match="got 1 names for 2 runs"):
        sarb.compare([first, str(empty)], names=["x"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two runs on the same data with other test images: the second was trained on the first one's test."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        hurry(patch)
        data = sarb.load("demo", train=24, test=12, size=64, processes=1)
        names = [*data.train.labels.paths, *data.test.labels.paths]
        for table, shift in (("one.csv", 0), ("two.csv", 6)):
            lines = ["file_name,split," + ",".join(data.categories[:3])]
            codes = np.concatenate([data.train.labels.values, data.test.labels.values])[:, :3]
            for number, name in enumerate(names):
                split = "test" if 24 - shift <= number < 36 - shift else "train"
                lines.append(
                    f"{data.train.root / name},{split}," + ",".join(map(str, (codes[number] > 0) * 1))
                )
            (folder / table).write_text("\n".join(lines) + "\n")
            words = ["sarb", "train", "--data", table, "-o", "encoding=binary", "--out", table[:3], "-q"]
            assert run(words, patch) == 0
    return folder


def test_images_that_a_run_was_trained_on_are_left_out(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    hurry(monkeypatch)
    data = sarb.load("one.csv", encoding="binary")
    found = sarb.compare(["one", "two"], data.test)
    assert len(found.labels) == 6 and "6 of 12 images are left out: a run was trained on them." in found.notes
    assert sarb.compare(["one", "two"]).labels.paths == found.labels.paths
    with pytest.raises(SarbError, match="at least one of the runs was trained on each of the 24 images"):
        sarb.compare(["one", "two"], data.train)
    model = sarb.load_model("one")
    loose = sarb.compare([model, "two"], data.test)
    assert any("Cannot check which of the images model 1 was trained on" in note for note in loose.notes)


def test_the_command(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    hurry(monkeypatch)
    capsys.readouterr()
    assert run(["sarb", "compare", "one", "two", "--out", "found"], monkeypatch) == 0
    out, err = capsys.readouterr()
    assert "Compared on 6 test images" in out and "page: found/comparison.html" in err
    assert "All runs have the same settings." in out and "Rough: only " in out
    assert err.splitlines()[-1] in ("next: sarb calibrate one", "next: sarb calibrate two")
    words = ["sarb", "compare", "one", "two", "--data", "one.csv", "-o", "encoding=binary", "--split", "all"]
    assert run([*words, "--json"], monkeypatch) == 0
    out, err = capsys.readouterr()
    assert "30 of 36 images are left out" in out and "next:" not in err
    assert run(["sarb", "compare", "one"], monkeypatch) == 2
    assert run([*words[:-1], "tset"], monkeypatch) == 2
    assert "Did you mean 'test'?" in capsys.readouterr().err
