"""Which values come next: the same ones whatever finishes first, and after a kill."""

import json

import pytest

from sarb.errors import SarbError
from sarb.tuning.space import Dimension
from sarb.tuning.study import STUDY, Study

pytest.importorskip("optuna", reason="needs the extra [tune]: pip install 'sarb[tune]'")
SPACE = (
    Dimension("lr", 1e-4, 1e-1, log=True),
    Dimension("epochs", 1, 9),
    Dimension("form", choices=("a", "b", None)),
)
TRIALS = 16


def study(folder, sampler="tpe", seed=0, **setup):
    return Study(folder, SPACE, sampler, seed, {"data": "squares", **setup})


def value(values):
    return round(50 - abs(values["epochs"] - 6) - (values["form"] == "a") - values["lr"], 6)


def search(folder, jobs, backwards=False, reopened=False, **options):
    """All trials, of which ``jobs`` are under way at once; the newest or the oldest of them ends first."""
    found = study(folder, **options)
    under_way, ended = {}, set()
    for number in range(TRIALS):
        while not ended.issuperset(range(number - jobs + 1)):
            waited_for = [other for other in under_way if other <= number - jobs]
            last = max(under_way) if backwards and max(under_way) not in waited_for else min(under_way)
            found.tell(last, "finished", value(under_way[last]))
            ended.add(last)
            del under_way[last]
            if reopened:
                found = study(folder, **options)
        under_way[number] = found.values_of(number, jobs)
    return [found.values_of(number, jobs) for number in range(TRIALS)]


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_the_values_do_not_depend_on_which_trial_ends_first_or_on_kills(sampler, tmp_path):
    first = search(tmp_path / "a", 3, sampler=sampler)
    assert first == search(tmp_path / "b", 3, backwards=True, sampler=sampler)
    assert first == search(tmp_path / "c", 3, reopened=True, sampler=sampler)
    assert first != search(tmp_path / "d", 3, sampler=sampler, seed=1)
    assert len({json.dumps(values) for values in first}) > TRIALS / 2
    for values in first:
        assert (
            1e-4 <= values["lr"] <= 1e-1
            and values["epochs"] in range(1, 10)
            and values["form"] in ("a", "b", None)
        )


def test_tpe_looks_where_it_was_good(tmp_path):
    """Of 40 trials, the later half is nearer to the best number of epochs than the earlier one."""
    found = study(tmp_path)
    distances = []
    for number in range(40):
        values = found.values_of(number, 1)
        distances.append(abs(values["epochs"] - 6))
        found.tell(number, "finished", value(values))
    assert sum(distances[20:]) < sum(distances[:20])


def test_a_grid_is_walked_in_order(tmp_path):
    space = (Dimension("epochs", 1, 2), Dimension("form", choices=("a", "b")))
    found = Study(tmp_path, space, "grid", 0, {})
    assert [tuple(found.values_of(number, 2).values()) for number in range(4)] == [
        (1, "a"),
        (1, "b"),
        (2, "a"),
        (2, "b"),
    ]


def test_a_trial_is_told_once_and_kept(tmp_path):
    found = study(tmp_path)
    values = [found.values_of(number, 1) for number in range(4)]
    found.tell(0, "finished", 40.5, curve=[30, 40.5], notes={"seconds": 3})
    found.tell(0, "failed", None)
    found.tell(1, "failed", None, notes={"error": "no luck"})
    found.tell(2, "pruned", None, curve=[10])
    entries = study(tmp_path).trials()
    assert [entry["state"] for entry in entries] == ["finished", "failed", "pruned", "running"]
    assert [entry["values"] for entry in entries] == values
    assert (entries[0]["value"], entries[0]["curve"], entries[0]["notes"]) == (
        40.5,
        [30, 40.5],
        {"seconds": 3},
    )
    assert entries[1]["notes"] == {"error": "no luck"} and entries[2]["curve"] == [10]


def test_the_journal_is_lines_of_json_and_a_torn_one_is_cut(tmp_path):
    found = study(tmp_path)
    found.values_of(0, 1)
    found.tell(0, "finished", 1.0)
    content = (tmp_path / STUDY).read_bytes()
    assert all(isinstance(json.loads(line), dict) for line in content.splitlines())
    assert [file.name for file in tmp_path.iterdir()] == [STUDY], "no lock and no snapshot is left behind"
    (tmp_path / STUDY).write_bytes(content + b'{"op_code": 4, "trial_')
    again = study(tmp_path)
    assert again.trials()[0]["value"] == 1.0
    again.values_of(1, 1)
    assert len(study(tmp_path).trials()) == 2


def test_other_settings_do_not_mix(tmp_path):
    study(tmp_path, known=0.3)
    study(tmp_path, known=0.1).values_of(0, 1)  # without a trial, there was nothing to mix with
    with pytest.raises(
        SarbError, match=r"other settings; choose another --out:\n  known: was 0\.1, now 0\.5$"
    ):
        study(tmp_path, known=0.5)
