"""What sarb writes, it reads with the options of the source: check, train, complete, review, train, every format."""

import numpy as np
import pytest

import sarb
from sarb.data.check.source import check
from sarb.data.loading import find, option_names
from sarb.data.writers.rewrite import default_suffix, reading
from sarb.errors import ConfigError
from sarb.serve.recogniser import Recogniser
from sarb.serve.start import open_desk
from sarb.workflows.completion import complete_session
from sarb.workflows.labelled import run_data
from sarb.workflows.training import train_session
from tests.data.fixtures import write_image
from tests.data.formats import FORMATS, write_example

pytestmark = pytest.mark.filterwarnings(
    "ignore::sarb.data.check.problems.DataWarning", "ignore::sarb.errors.DataNote"
)
GIVEN = {
    "backbone": "tiny",
    "image_size": 32,
    "epochs": 1,
    "batch_size": 8,
    "network": "pooled",
    "method": "partial_bce",
}
#: options of every source; Visual Genome has a ``test`` of its own
DRAWN = ("test", "valid", "split_seed")
#: format -> options with which its example can be trained on
OTHER = {
    "list_csv": {"unlisted": "absent", "label_delimiter": "space", "is_valid": "test"},
    "cvat": {"unlisted": "absent", "shapes": "ignore"},
}


def train(source, options, out):
    """Train for an epoch with a part of the labels hidden."""
    return train_session(
        source=source, data_options=options, known=0.8, out=out, given=GIVEN, quiet=True, page=False
    )[0]


def pictures(data):
    """Return file -> labels of all splits; the same for two tables about the same images."""
    return {
        split: {
            file.resolve(): row.tolist() for file, row in zip(part.paths, part.labels.values, strict=True)
        }
        for split, part in data.splits.items()
    }


def read_again(path, example, options):
    """Load a written file with the same options; without them if its error says that they do not apply."""
    data = sarb.load(example.source, **options)
    how = reading(data, path)
    if not how.foreign:
        return how.source, options
    kept = {
        name: value for name, value in options.items() if name in DRAWN and find(example.source)[0] != "vg"
    }
    foreign = options.keys() - option_names("table")
    if foreign:
        with pytest.raises(ConfigError) as error:
            sarb.load(how.source, **options)
        assert all(f"has no option '{name}', which is for " in str(error.value) for name in foreign)
    return how.source, kept


@pytest.mark.parametrize("away", [False, True], ids=["beside", "away"])
@pytest.mark.parametrize("name", FORMATS)
def test_the_loop(name, away, tmp_path, monkeypatch):
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    example = write_example(name, tmp_path / "data")
    for number, file in enumerate(
        sorted(file for file in tmp_path.rglob("*") if file.suffix in (".jpg", ".png"))
    ):
        write_image(file, number, (8, 8))
    options = OTHER.get(name, example.options)
    before = sarb.load(example.source, **options)
    assert check(example.source, **options).ok
    run = train(example.source, options, tmp_path / "first")

    home = tmp_path / "elsewhere" if away else before.train.source.parent
    home = home if home.is_dir() or away else home.parent
    filled = home / f"filled{default_suffix(before)}"
    complete_session(run, filled, to="wide", min_confidence=0.55)
    source, same = read_again(filled, example, options)
    after = sarb.load(source, **same)
    hidden = pictures(run_data(run))
    assert after.categories == before.categories
    for split, rows in pictures(after).items():
        assert rows.keys() == hidden[split].keys()
        for file, row in rows.items():
            known = np.array(hidden[split][file]) != 0
            assert np.array_equal(np.array(row)[known], np.array(hidden[split][file])[known])

    labels, label_options = (example.source, options) if has_gaps(before) else (source, same)
    if has_gaps(sarb.load(labels, **label_options)):
        out = tmp_path / "elsewhere" / f"reviewed{default_suffix(before)}" if away else None
        reviewed = review(run, labels, label_options, out)
        source, same = read_again(reviewed, example, options)
        assert pictures(sarb.load(source, **same)).keys() == hidden.keys()
        assert not has_gaps(sarb.load(source, **same))
    assert check(source, **same).ok
    train(source, same, tmp_path / "second")


def has_gaps(data):
    """Whether there is a label to ask about; a review asks about training images only."""
    return not data.train.labels.known.all()


def review(run, labels, options, out):
    """Answer all questions, yes and no in turn."""
    desk = open_desk(Recogniser(sarb.load_model(run)), labels, options, out)
    for turn in range(10_000):
        asked = desk.next("ann", count=1)
        if not asked:
            break
        desk.answer("ann", asked[0].id, ("yes", "no")[turn % 2])
    desk.close()
    return desk.out
