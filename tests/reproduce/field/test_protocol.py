import numpy as np
import pytest

from sarb.data.dataset import Dataset
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.reproduce.cells import Plan
from sarb.reproduce.field.protocol import (
    FIELD_ROWS,
    PARTIAL,
    SINGLE,
    SPACES,
    TRIAL_SEED,
    Job,
    assignments,
    cells_of,
    check,
    trial_data,
    trials_of,
    tries,
)
from sarb.reproduce.field.work import settings_of
from sarb.rows import FIELD, ROWS


def test_the_field_has_every_later_method():
    assert set(FIELD) < set(FIELD_ROWS) <= set(ROWS) and len(set(FIELD_ROWS)) == len(FIELD_ROWS)
    assert set(SPACES) <= set(FIELD_ROWS)


@pytest.mark.parametrize("row", FIELD_ROWS)
def test_every_row_has_as_many_trials_all_different_the_published_options_first(row):
    for number in (1, 3):
        assert len(tries(row, number)) == number
    found = tries(row, 3)
    assert len({tuple(options.items()) for options in found}) == 3
    assert {options["lr"] for options in found} == {1.0, 3.0, 1 / 3}
    settings = settings_of(Plan("demo", "out", recipe="small"), Job(row, PARTIAL, 0.1, 0), ())
    first = settings_of(
        Plan("demo", "out", recipe="small"),
        Job(row, PARTIAL, 0.1, 0),
        assignments(row, found[0], settings.lr),
    )
    assert first.lr == settings.lr
    changed = first.method_options.items() - settings.method_options.items()
    own = {name.removeprefix("method."): values[0] for name, values in SPACES.get(row, {}).items()}
    assert dict(changed).items() <= own.items()  # the published value, written out


def test_more_trials_start_with_the_same_ones():
    assert tries("SPLC", 9)[:3] == tries("SPLC", 3) and len(tries("SPLC", 100)) == 9


def test_cells_have_all_seeds_at_the_smallest_share_only():
    cells = cells_of(["AN", "IU"], [PARTIAL, SINGLE], [0.5, 0.1], [0, 1, 2], 1)
    partial = {(job.known, job.seed) for job in cells if job.setting == PARTIAL}
    assert partial == {(0.1, 0), (0.1, 1), (0.1, 2), (0.5, 0)}
    assert {(job.row, job.seed) for job in cells if job.single} == {("AN", 0), ("IU", 0)}
    assert len(trials_of(["AN", "IU"], [PARTIAL, SINGLE], 3)) == 12


def test_everything_wrong_is_said_at_once():
    with pytest.raises(ConfigError) as raised:
        check(["SPLCC"], ["singel-positive"], [1.0], [TRIAL_SEED])
    text = str(raised.value)
    assert "Did you mean 'SPLC'" in text and "Did you mean 'single-positive'" in text
    assert "below 1" in text and f"seed {TRIAL_SEED}" in text
    with pytest.raises(ConfigError, match="no seed"):
        check(["SPLC"], [PARTIAL], [0.1], [])


@pytest.fixture
def train():
    values = np.where(np.random.RandomState(0).random_sample((400, 20)) < 0.3, 1, -1)
    return Dataset(LabelMatrix(values, [str(number) for number in range(20)]))


def test_a_partial_trial_hides_everything_alike(train):
    hidden, judged = trial_data(train, Job("AN", PARTIAL, 0.1, TRIAL_SEED, 0))
    assert np.array_equal(hidden.labels.values, train.hide(0.1, TRIAL_SEED).labels.values)
    assert len(judged) == 100 and set(judged.labels.paths) < set(train.labels.paths)


def test_a_single_positive_trial_is_judged_by_labels_of_both_kinds(train):
    hidden, judged = trial_data(train, Job("AN", SINGLE, 1.0, TRIAL_SEED, 0))
    held = np.isin(hidden.labels.paths, judged.labels.paths)
    assert (np.count_nonzero(hidden.labels.values[~held], axis=1) == 1).all()
    assert (hidden.labels.values[~held] >= 0).all() and (judged.labels.values < 0).any()
    assert np.array_equal(hidden.labels.values[held], judged.labels.values)
    assert judged.labels.known_share == pytest.approx(0.1, abs=0.02)


def test_the_judges_are_those_that_the_training_holds_out(train):
    from sarb.batches.sources import Split
    from sarb.reproduce.field.protocol import TRIAL_VALID

    hidden, judged = trial_data(train, Job("AN", SINGLE, 1.0, TRIAL_SEED, 0))
    split = Split.of(hidden, TRIAL_VALID, TRIAL_SEED)
    assert split.valid.labels.paths == judged.labels.paths
