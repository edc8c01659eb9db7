"""What a search tries: reading, and checks against the settings that exist."""

import pytest

from sarb.errors import ConfigError
from sarb.settings import resolve
from sarb.tuning.space import Dimension, default_space, grid_of, put, read_dimension, read_space


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lr=1e-4..0.1:log", Dimension("lr", 1e-4, 0.1, log=True)),
        ("train.lr = 0.1 .. 0.2", Dimension("lr", 0.1, 0.2)),
        ("epochs=2..8", Dimension("epochs", 2, 8)),
        ("method.claims=strict,names", Dimension("method.claims", choices=("strict", "names"))),
        ("method.finetune=true,false", Dimension("method.finetune", choices=(True, False))),
        ("network.dim=8,16.5,none", Dimension("network.dim", choices=(8, 16.5, None))),
        ("lr=-1..1", Dimension("lr", -1, 1)),
    ],
)
def test_read(text, expected):
    found = read_dimension(text)
    assert found == expected
    assert [type(end) for end in found.ends()] == [type(end) for end in expected.ends()]
    assert "none" in text or read_dimension(str(found)) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr", "expected NAME=low..high"),
        ("lr=", "expected NAME=low..high"),
        ("lr=0.1", "at least two different values"),
        ("lr=1,1", "at least two different values"),
        ("lr=a..b", "expected two numbers"),
        ("lr=0..inf", "expected two numbers"),
        ("lr=2..1", "low end must be below"),
        ("lr=0..1:log", "begins above 0"),
        ("lr=1..2:lgo", "Did you mean 'log'?"),
    ],
)
def test_what_cannot_be_read(text, said):
    with pytest.raises(ConfigError, match=said):
        read_dimension(text)


OPTIONS = {"method": "sarb", "network": "ssgrl", "method_options": {"start": 0.5}}


def test_a_range_has_the_type_of_its_setting():
    texts = [
        "lr=1..2",
        "epochs=2..8",
        "method.start=1..3",
        "lr.graph=1..2",
        "network.dim=8..16",
        "min_steps=0..5",
    ]
    space = read_space(texts, {}, OPTIONS)
    assert [type(dimension.low) for dimension in space] == [float, int, float, float, int, int]


def test_all_mistakes_are_named_with_what_was_meant():
    texts = ["batch_sise=2,4", "method.strat=0..1", "optimizer=adm,adam", "metod.start=1,2", "lr=x..y"]
    texts += ["lr=-1..1", "epochs=1..3", "data.encoding=a,b", "seed=1,none", "weight_decay=0..1"]
    with pytest.raises(ConfigError) as caught:
        read_space([*texts, "weight_decay=1..2"], {}, OPTIONS, taken=["epochs"])
    said = {
        problem.split(": ", 1)[0]: problem
        for problem in caught.value.problems
        if problem.startswith("search ")
    }
    assert "Did you mean 'batch_size'?" in said["search batch_sise=2,4"]
    assert "Did you mean 'start'?" in said["search method.strat=0..1"]
    assert "Did you mean 'adam'?" in said["search optimizer=adm,adam"]
    assert "Did you mean 'method'?" in said["search metod.start=1,2"]
    assert "expected two numbers" in said["search lr=x..y"]
    assert "lr must be at least 0, got -1" in said["search lr=-1..1"]
    assert "-o key=value" in said["search data.encoding=a,b"]
    assert "recipe decides" in said["search seed=1,none"]
    rest = [problem for problem in caught.value.problems if problem not in said.values()]
    assert rest == [
        "search: weight_decay is searched twice",
        "search: epochs is set as well; leave one of them out",
    ]


def test_mistakes_of_the_other_settings_are_not_repeated_for_every_dimension():
    with pytest.raises(ConfigError) as caught:
        read_space(["lr=0.1,0.2", "epochs=1,2"], {}, {**OPTIONS, "batch_size": 0})
    assert caught.value.problems == ["batch_size must be at least 1, got 0"]


def test_put_leaves_the_given_options_alone():
    changed = put(OPTIONS, {"lr": 0.1, "method.start": 2, "lr.graph": 0.5, "backbone.train_stages": 1})
    assert changed == {
        **OPTIONS,
        "lr": 0.1,
        "method_options": {"start": 2},
        "lr_scale": {"graph": 0.5},
        "backbone_options": {"train_stages": 1},
    }
    assert OPTIONS["method_options"] == {"start": 0.5}


def test_the_default_is_around_the_recipe_and_what_the_method_declares():
    assert default_space(resolve({}, **OPTIONS, lr=0.003)) == ["lr=0.0003..0.03:log", "method.start=0.1..0.8"]
    assert default_space(resolve({}, method="partial_bce", lr=0.3)) == ["lr=0.03..3:log"]
    fitted = resolve("auto")
    assert [text.partition("=")[0] for text in default_space(fitted)] == ["method.neighbours"], (
        "lr has no effect"
    )


@pytest.mark.parametrize("method", ["sarb", "auto"])
def test_what_methods_declare_is_accepted(method):
    options = {"method": method}
    assert read_space(default_space(resolve({}, **options)), {}, options)


def test_grid():
    space = [Dimension("epochs", 2, 3), Dimension("method.form", choices=("a", "b"))]
    assert grid_of(space) == [
        {"epochs": epochs, "method.form": form} for epochs in (2, 3) for form in ("a", "b")
    ]
    with pytest.raises(ConfigError, match=r"lr=0\.1\.\.0\.2 has infinitely many values; list some"):
        grid_of([*space, Dimension("lr", 0.1, 0.2)])
