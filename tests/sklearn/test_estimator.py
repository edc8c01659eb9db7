"""SarbClassifier: the manners of scikit-learn."""

import copy
import inspect
import io
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import sarb
from sarb.data.dataset import Dataset
from tests.documentation.tools import ROOT, blocks, hurry

FAST = {"backbone": "tiny", "image_size": 32, "epochs": 1, "random_state": 0}


def classifier(**options):
    return sarb.SarbClassifier(**{**FAST, "encoding": "signed", **options})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def arrays(folder):
    """24 pictures (32, 32, 3), also as PNG files: category c is a bright colour channel c."""
    random = np.random.RandomState(0)
    shown = random.rand(24, 3) < 0.5
    made = random.randint(0, 80, (24, 32, 32, 3)) + 160 * shown[:, None, None, :]
    for number, pixels in enumerate(made):
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number:02d}.png")
    return made.astype(np.uint8)


@pytest.fixture(scope="module")
def files(folder, arrays):
    return [str(folder / f"{number:02d}.png") for number in range(len(arrays))]


@pytest.fixture(scope="module")
def labels(arrays):
    """(24, 3) signed, one entry in four unknown."""
    truth = np.where(arrays.mean((1, 2)) > 100, 1, -1)
    return np.where(np.random.RandomState(1).rand(*truth.shape) < 0.25, 0, truth)


@pytest.fixture(scope="module")
def fitted(files, labels):
    return classifier(categories=["red", "green", "blue"]).fit(files, labels)


def test_the_import_loads_neither_torch_nor_scikit_learn():
    code = (
        "import sarb, sys; assert 'SarbClassifier' in dir(sarb); "
        "assert not {'torch', 'sklearn'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_parameters():
    given = {
        "method": "partial_bce",
        "lr": 0.1,
        "method_options": {"form": "paper"},
        "categories": ("a", "b"),
    }
    made = sarb.SarbClassifier(**given)
    assert {name: made.get_params()[name] for name in given} == given
    assert {*made.get_params()} == {*inspect.signature(sarb.SarbClassifier).parameters} == {*vars(made)}
    assert clone(made.set_params(lr=0.2)).get_params() == {
        **sarb.SarbClassifier(**given).get_params(),
        "lr": 0.2,
    }
    with pytest.raises(ValueError, match="Invalid parameter 'lrr'"):
        made.set_params(lrr=1)


@pytest.mark.parametrize(
    "kind", ["text", "Path", "array", "column", "Pillow", "pixels", "list of pixels", "mixed", "Dataset"]
)
def test_every_kind_of_picture_is_the_same_to_it(kind, files, arrays, labels, fitted):
    given = {
        "text": files,
        "Path": [Path(file) for file in files],
        "array": np.array(files),
        "column": np.array(files, dtype=object)[:, None],
        "Pillow": [Image.open(file) for file in files],
        "pixels": arrays,
        "list of pixels": list(arrays),
        "mixed": [*files[:5], *arrays[5:]],
        "Dataset": Dataset(
            sarb.LabelMatrix(labels, "abc", [Path(file).name for file in files]), Path(files[0]).parent
        ),
    }[kind]
    again = clone(fitted).fit(given, labels)
    np.testing.assert_array_equal(again.decision_function(given), fitted.decision_function(files))


def test_pictures_in_memory_are_not_written(arrays, labels, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "cache"))
    classifier().fit(arrays, labels)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".npy", ".json", ".lock"}


def test_an_array_that_can_be_read_in_several_ways_is_not_guessed(files):
    with pytest.raises(ValueError) as caught:
        sarb.SarbClassifier(**FAST).fit(files[:2], [[1, 0, 0], [0, 1, 0]])
    assert isinstance(caught.value, sarb.DataError)
    for reading in (
        'encoding="signed": 2 present, 0 absent, 4 unknown',
        'encoding="binary": 2 present, 4 absent, 0 unknown',
        'encoding="minus_one_unknown": 2 present, 4 absent, 0 unknown',
    ):
        assert reading in str(caught.value)


def test_x_y_and_categories_must_fit(files, labels):
    with pytest.raises(ValueError, match="X has 24 images, but y has 23 rows"):
        classifier().fit(files, labels[:-1])
    with pytest.raises(ValueError, match="y has 3 columns, but there are 2 categories: a, b"):
        classifier(categories=["a", "b"]).fit(files, labels)
    with pytest.raises(ValueError, match="but categories= has"):
        classifier(categories=["a", "b", "d"]).fit(files, sarb.LabelMatrix(labels, ["a", "b", "c"]))
    with pytest.raises(sarb.ConfigError, match="'seed' is a parameter; pass random_state= instead"):
        classifier(options={"seed": 1}).fit(files, labels)


def test_settings_reach_the_training(files, labels, tmp_path):
    made = classifier(
        method="sarb",
        out=tmp_path / "run",
        lr=0.5,
        options={"schedule": "constant"},
        method_options={"alpha": 0.25},
    )
    made.fit(files, labels)
    used = sarb.files.read_json(tmp_path / "run/config.json")["settings"]
    assert (used["lr"], used["schedule"], used["method_options"]["alpha"]) == (0.5, "constant", 0.25)
    assert (used["epochs"], used["backbone"], used["seed"]) == (1, "tiny", 0)
    assert (used["method"], used["network"]) == ("sarb", "ssgrl")
    assert sarb.load_model(tmp_path / "run").categories == tuple(made.classes_)


@pytest.mark.parametrize(("recipe", "network"), [(None, "probe"), ("small", "ssgrl")])
def test_nothing_given_is_auto(recipe, network, files, labels):
    made = classifier(recipe=recipe).fit(files, labels)
    assert made.get_params()["method"] is None and made.model_.config["network"] == network


def test_results(fitted, files):
    logits = fitted.decision_function(files)
    p = fitted.predict_proba(files)
    y = fitted.predict(files)
    assert fitted.classes_.tolist() == ["red", "green", "blue"] and fitted.calibration_ is None
    np.testing.assert_array_equal(logits, sarb.predict(fitted.model_, files).logits)
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-logits.astype(float))))
    np.testing.assert_array_equal(y, logits >= 0)
    assert y.dtype == np.int64 and 0 < y.sum() < y.size


def test_score_sees_known_entries_only(fitted, files, labels):
    logits = fitted.decision_function(files)
    expected = [
        average_precision_score(y[y != 0] == 1, z[y != 0]) for y, z in zip(labels.T, logits.T, strict=True)
    ]
    assert fitted.score(files, labels) == pytest.approx(np.mean(expected))
    # columns with names are matched by name; without names they are those of fit
    turned = sarb.LabelMatrix(labels[:, ::-1], ["blue", "green", "red"])
    assert fitted.score(files, turned) == fitted.score(files, labels) != fitted.score(files, labels[:, ::-1])
    dataset = Dataset(sarb.LabelMatrix(labels, fitted.classes_, files))
    assert fitted.score(files, labels) == pytest.approx(sarb.evaluate(fitted.model_, dataset).mAP / 100)
    without = labels.copy()
    without[without[:, 0] == 1, 0] = 0
    assert fitted.score(files, without) == pytest.approx(np.mean(expected[1:]))
    with pytest.warns(UndefinedMetricWarning, match="no category has a known positive"):
        assert np.isnan(fitted.score(files, -np.ones_like(labels)))


def test_calibrated_by_images_held_out(files, arrays, labels, tmp_path):
    made = classifier(valid=0.5, out=tmp_path / "run").fit(files, labels)
    p = made.predict_proba(files)
    np.testing.assert_allclose(p, made.calibration_(sarb.predict(made.model_, files)))
    np.testing.assert_array_equal(made.predict(files), p >= made.calibration_.thresholds)
    assert np.abs(p - 1 / (1 + np.exp(-made.decision_function(files)))).max() > 1e-3
    held = np.random.RandomState(0).permutation(24)[:12]
    assert made.calibration_.counts.sum() == np.count_nonzero(labels[held])
    trained = sarb.LabelMatrix.load(tmp_path / "run/labels.npz").paths
    assert {*trained} == {*files} - {files[place] for place in held}
    assert (
        sarb.load_calibration(tmp_path / "run").thresholds.tolist() == made.calibration_.thresholds.tolist()
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made)).predict_proba(files), p)
    np.testing.assert_array_equal(
        clone(made).set_params(out=None).fit(arrays, labels).predict_proba(files), p
    )
    with pytest.warns(UserWarning, match="the 1 held-out images do not have both"):
        assert classifier(valid=0.05).fit(files, np.ones_like(labels)).calibration_ is None


def test_random_state(files, labels, fitted):
    def logits(random_state):
        return clone(fitted).set_params(random_state=random_state).fit(files, labels).decision_function(files)

    np.testing.assert_array_equal(logits(np.random.RandomState(3)), logits(np.random.RandomState(3)))
    np.testing.assert_array_equal(logits(None), fitted.decision_function(files))
    assert not np.array_equal(logits(1), fitted.decision_function(files))


@pytest.mark.parametrize("verb", ["predict", "predict_proba", "decision_function", "score"])
def test_not_fitted(verb, files):
    with pytest.raises(NotFittedError):
        getattr(classifier(), verb)(files, *[[[1, 0]]][: verb == "score"])


def test_pipeline(files, labels, arrays):
    made = Pipeline(
        [("read", FunctionTransformer(lambda X: [Image.open(x) for x in X])), ("sarb", classifier())]
    )
    assert made.fit(files, labels).predict(files).shape == (24, 3)
    assert made.score(files, labels) == made[-1].score(arrays, labels)


def test_cross_validation(files, arrays, labels):
    scores = cross_val_score(classifier(), arrays, labels, cv=2, error_score="raise")
    assert scores.shape == (2,) and ((scores > 0) & (scores <= 1)).all()
    blank = np.where(labels == 0, np.nan, labels == 1)
    same = cross_val_score(classifier(encoding="binary"), files, blank, cv=KFold(2), error_score="raise")
    np.testing.assert_array_equal(same, scores)


def test_grid_search(files, labels):
    grid = {"lr": [1e-4, 1e-2]}
    search = GridSearchCV(classifier(method="sarb"), grid, cv=2, error_score="raise").fit(
        np.array(files), labels
    )
    assert search.best_params_["lr"] in grid["lr"] and search.best_estimator_.predict(files).shape == (24, 3)
    assert search.cv_results_["mean_test_score"][0] != search.cv_results_["mean_test_score"][1]


def test_pickle_joblib_and_copy(fitted, files, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stored = io.BytesIO()
    joblib.dump(fitted, stored)
    stored.seek(0)
    for again in (pickle.loads(pickle.dumps(fitted)), joblib.load(stored), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(again.decision_function(files), fitted.decision_function(files))
        assert (
            again.get_params() == fitted.get_params() and again.classes_.tolist() == fitted.classes_.tolist()
        )
        assert again.model_.folder is None and again.model_ is not fitted.model_
    assert {*fitted.__getstate__()["model_"]} == {"model.safetensors", "config.json"}
    assert fitted.model_.folder is None and not [*tmp_path.iterdir()]
    assert pickle.loads(pickle.dumps(classifier())).get_params() == classifier().get_params()


def test_the_class_itself_says_that_it_takes_no_tables():
    from sklearn.utils import get_tags

    tags = get_tags(classifier())
    assert (tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string) == (
        False,
        True,
        True,
    )
    assert tags.classifier_tags.multi_label and tags.target_tags.multi_output and tags.target_tags.required
    assert not (tags.target_tags.single_output or tags.classifier_tags.multi_class or tags.input_tags.sparse)


def test_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    shown = [block for block in blocks(ROOT / "docs/estimator.md") if block.language == "python"]
    names = {}
    for block in shown:
        exec(compile("\n" * block.line + block.text, "estimator.md", "exec"), names)
    said = capsys.readouterr().out
    assert (
        len(shown) == 4
        and 'encoding="minus_one_unknown": 2 present, 2 absent' in said
        and "{'method_options': {'claims': '" in said
    )
