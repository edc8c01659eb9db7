from types import SimpleNamespace

import numpy as np
import pytest

import sarb
import sarb.labelling.folds
from sarb.errors import ConfigError
from sarb.labelling.folds import fold_numbers, out_of_fold, without
from tests.labelling.made_scores import make


def test_parts_are_even_in_every_category_and_kind():
    _, labels, _, _ = make(100, [1.0, 0.3, 2.0], [0.0, -4.0, 0.0], known=0.4)
    part = fold_numbers(labels, 3)
    for column in range(3):
        for code in (-1, 0, 1):
            sizes = np.bincount(part[labels.values[:, column] == code, column], minlength=3)
            assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(part, fold_numbers(labels, 3)) and not np.array_equal(
        part, fold_numbers(labels, 3, seed=1)
    )
    with pytest.raises(ConfigError, match="at least 2"):
        fold_numbers(labels, 1)


def test_a_label_is_scored_by_the_model_that_has_not_seen_it(squares_data, monkeypatch, tmp_path, capsys):
    """A pretended model whose logits are its number, and that remembers which labels it was trained on."""
    from sarb.data.dataset import Dataset

    train, seen = squares_data.train.hide(0.5, 0), []

    def start_run(dataset, settings, **options):
        seen.append(dataset.labels.values.copy())
        return SimpleNamespace(model=len(seen) - 1)

    def predict(model, dataset, **options):
        assert isinstance(dataset, Dataset)
        return sarb.Scores(np.full(dataset.labels.shape, model), dataset.categories, dataset.labels.paths)

    monkeypatch.setattr(sarb.labelling.folds, "start_run", start_run)
    monkeypatch.setattr(sarb.labelling.folds, "predict", predict)
    scores = out_of_fold(train, 3, out=tmp_path, progress=False)
    assert len(seen) == 3
    for row, column in np.argwhere(train.labels.known):
        trained = [values[row, column] != 0 for values in seen]
        assert trained.count(False) == 1 and trained.index(False) == scores.logits[row, column]
    assert scores.paths == train.labels.paths and not np.isnan(scores.logits).any()
    assert capsys.readouterr().err == ""
    out_of_fold(train, 2)
    assert capsys.readouterr().err.splitlines() == ["part 1 of 2", "part 2 of 2"]
    del seen[3:]
    again = out_of_fold(train, 3, out=tmp_path, progress=False)
    assert len(seen) == 3 and again == scores


def test_without():
    _, labels, _, _ = make(5, [1.0], [0.0])
    hidden = np.array([[True], [False], [True], [False], [False]])
    assert without(labels, hidden).values[:, 0].tolist() == [
        0,
        *labels.values[1:2, 0],
        0,
        *labels.values[3:, 0],
    ]
