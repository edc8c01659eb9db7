"""Options: hints of callables and dataclasses, text to values, checks; the same for all who take options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Protocol, Union

import numpy as np
import pytest

from sarb.data import DATASETS, load
from sarb.errors import ConfigError, unknown_name
from sarb.methods.partial_bce import PartialBCE
from sarb.model import build_network
from sarb.networks.backbones.tiny import Tiny
from sarb.networks.pooled import Pooled
from sarb.options import TEXT_WORDS, AtLeast, check, describe, from_text, hints_of, matches, plain_number
from sarb.registry import BACKBONES, METHODS, NETWORKS, find
from sarb.settings import Settings, option_types, resolve

if TYPE_CHECKING:
    from nowhere import Unknown  # as a module does that imports a type for type checkers only

MaybeFloat = Optional[float]  # noqa: UP045


class Walks(Protocol):
    def walk(self) -> None: ...


# which options there are


def a_function(place: Unknown, second: int, *rest: int, third: MaybeFloat = None, free=1, **more: str):
    """Take options in every way there is."""


class A:
    def __init__(self, network: Unknown, *, mode: Literal["a", "b"] = "a", sizes: list[int] | None = None):
        pass


class B(A):
    """Inherit the options."""


@dataclass
class Fields:
    count: Annotated[int, AtLeast(1)] = 1
    names: list[str] = field(default_factory=list)


def test_hints_of_a_function_a_class_and_a_dataclass():
    assert hints_of(a_function) == {"place": Any, "second": int, "third": float | None, "free": Any}
    assert hints_of(a_function, keyword_only=True) == {"third": float | None, "free": Any}
    assert hints_of(B, keyword_only=True) == {"mode": Literal["a", "b"], "sizes": list[int] | None}
    assert hints_of(Fields) == {"count": Annotated[int, AtLeast(1)], "names": list[str]}
    assert "second" in hints_of(partial(a_function, None))


def test_hints_are_resolved_where_the_function_was_written():
    path = hints_of(load)["source"]  # Path is imported there, too, but Data is not imported here
    assert path == str | Path


# text to values


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("7", int, 7),
        ("-1e-3", float, -1e-3),
        ("Yes", bool, True),
        ("0", bool, False),
        ("7", str, "7"),
        ("7", Any, "7"),
        ("a/b", Path, Path("a/b")),
        ("none", int | None, None),
        ("None", Optional[str], None),  # noqa: UP045
        ("none", str, "none"),
        ("7", Union[int, None], 7),  # noqa: UP007
        ("0.5", float | str | None, 0.5),
        ("auto", float | str | None, "auto"),
        ("2", str | Path, "2"),
        ("b", Literal["a", "b"], "b"),
        ("2012", Literal[2007, 2012], 2012),
        ("0.5", Literal["auto"] | float, 0.5),
        ("none", Literal["a"] | None, None),
        ("1, 2,3", list[int], [1, 2, 3]),
        ("", list[int], []),
        ("3", list[int], [3]),
        ("cat,dog", list[str], ["cat", "dog"]),
        ("none", list[int] | None, None),
        ("1,0.5", tuple[int, float], (1, 0.5)),
        ("1,2,3", tuple[int, ...], (1, 2, 3)),
        ("sd=0.1, graph=2", dict[str, float], {"sd": 0.1, "graph": 2.0}),
        ("3", Annotated[int, AtLeast(1)], 3),
        ("3", Annotated[int, AtLeast(1)] | None, 3),
    ],
)
def test_text_becomes_the_hinted_type(text, hint, value):
    found = from_text(text, hint)
    assert found == value and type(found) is type(value)
    assert matches(found, hint)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("x", int),
        ("1.5", int),
        ("x", float | None),
        ("perhaps", bool),
        ("x", None),
        ("c", Literal["a", "b"]),
        ("1,x", list[int]),
        ("1", tuple[int, int]),
        ("1,2,3", tuple[int, int]),
        ("sd", dict[str, float]),
        ("sd=x", dict[str, float]),
    ],
)
def test_text_that_cannot_be_converted_stays_and_does_not_match(text, hint):
    assert from_text(text, hint if hint is not None else type(None)) == text
    assert not matches(text, hint if hint is not None else type(None))


# values


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (1, float),
        (1.5, float),
        (np.float64(1.5), float),
        (True, bool),
        (None, int | None),
        (Path("a"), str),
        ("a", Path),
        (Path("a"), Path | None),
        ([1, 2], list[int]),
        ((1, 2), list[int]),
        ([1, 2.5], tuple[int, float]),
        ([], tuple[int, ...]),
        ({"a": 1}, dict[str, float]),
        ([None, 1], list[int | None]),
        ({"a": [1]}, dict[str, list[int]]),
        (object(), Any),
        ([1], Sequence[int]),
        (len, Callable[[Any], int]),
        ([1], list),
        ("anything", Walks),
    ],
)
def test_values_that_match(value, hint):
    assert matches(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (True, float),
        (True, Literal[1]),
        (1, Literal[True]),
        (1, bool),
        (1.0, int),
        (None, int),
        (1, str),
        (1, Path),
        ("ab", list[str]),
        ([1, "2"], list[int]),
        ([True], list[int]),
        ([1], tuple[int, int]),
        ({"a": "x"}, dict[str, float]),
        ({1: 1.0}, dict[str, float]),
        ([("a", 1)], dict[str, float]),
        (["a"], Literal["a"]),
        (1, Sequence[int]),
    ],
)
def test_values_that_do_not_match(value, hint):
    assert not matches(value, hint)


def test_numbers_of_numpy_become_plain():
    for value in (np.int64(3), np.float32(0.5), np.float64(0.5), np.str_("a"), np.array(2)):
        assert type(plain_number(value)) in (int, float, str) and plain_number(value) == value
    for value in (3, "a", None, [1], np.array([1, 2])):
        assert plain_number(value) is value


def test_all_problems_are_returned_in_the_order_of_the_values():
    hints = {
        "mode": Literal["fast", "slow"] | None,
        "sizes": list[int],
        "rate": Annotated[float, AtLeast(0)] | None,
        "count": int,
    }
    values = {"mode": "fats", "sizes": [1, "x"], "rate": -1, "cuont": 3, "count": 1.5}
    found = check(
        values, hints, unknown=lambda name: unknown_name("option", name, hints), label="x.{}".format
    )
    assert found == [
        "unknown x.mode 'fats'. Did you mean 'fast'? Available: fast, slow",
        "x.sizes must be a list of int, got [1, 'x']",
        "x.rate must be at least 0, got -1",
        "unknown option 'cuont'. Did you mean 'count'? Available: count, mode, rate, sizes",
        "x.count must be int, got 1.5",
    ]
    good = {"mode": None, "sizes": [], "rate": None, "count": 0}
    assert check(good, hints, unknown=str) == [] == check({"rate": 0}, hints, unknown=str)
    assert check({"rate": float("nan")}, hints, unknown=str) == ["rate must be finite, got nan"]


@pytest.mark.parametrize(
    ("hint", "in_python", "as_text"),
    [
        (int, "int", "a whole number"),
        (bool | None, "bool or None", "true or false"),
        (float | str | None, "float, str or None", "a number or text"),
        (str | Path | None, "str, Path or None", "text or a path"),
        (Annotated[float, AtLeast(0)] | None, "float or None", "a number"),
        (list[int], "a list of int", "values separated by commas, each a whole number"),
        (tuple[str, ...], "a list of str", "values separated by commas, each text"),
        (
            tuple[int, float],
            "a list of 2 values (int, float)",
            "2 values separated by commas (a whole number, a number)",
        ),
        (dict[str, float], "a dict of float", "name=value pairs separated by commas, each value a number"),
        (list[Literal["a", "b"]], "a list of 'a' or 'b'", "values separated by commas, each 'a' or 'b'"),
        (Literal["auto"] | float, "'auto' or float", "'auto' or a number"),
        (list | None, "a list or None", "a list"),
        (Walks, "Walks", "Walks"),
        (Any, "Any", "Any"),
    ],
)
def test_types_in_messages(hint, in_python, as_text):
    assert describe(hint) == in_python
    assert describe(hint, TEXT_WORDS) == as_text


# the same options in a method, a network, a backbone and a reader

Mode = Literal["fast", "slow"]


class MyMethod(PartialBCE):
    def __init__(
        self,
        network: Any,
        *,
        mode: Mode = "fast",
        sizes: list[int] | None = None,
        rate: MaybeFloat = None,
    ) -> None:
        super().__init__(network)


class MyNetwork(Pooled):
    def __init__(
        self,
        backbone: Any,
        categories: int,
        graph: Any = None,
        words: Any = None,
        *,
        mode: Mode = "fast",
        sizes: list[int] | None = None,
        rate: MaybeFloat = None,
    ) -> None:
        super().__init__(backbone, categories)


class MyBackbone(Tiny):
    def __init__(self, *, mode: Mode = "fast", sizes: list[int] | None = None, rate: MaybeFloat = None):
        super().__init__()
        self.given = (mode, sizes, rate)


def my_reader(*, mode: Mode = "fast", sizes: list[int] | None = None, rate: MaybeFloat = None):
    return {"mode": mode, "sizes": sizes, "rate": rate}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(METHODS, "mine", f"{__name__}:MyMethod")
    monkeypatch.setitem(NETWORKS, "mine", f"{__name__}:MyNetwork")
    monkeypatch.setitem(BACKBONES, "mine", f"{__name__}:MyBackbone")
    monkeypatch.setitem(DATASETS, "mine", f"{__name__}:my_reader")


GOOD = ({"mode": "slow", "sizes": [1, 2], "rate": 1}, {"sizes": None, "rate": None}, {"sizes": []})
BAD = {"mode": "slwo", "sizes": [1.5], "rate": "x"}


@pytest.mark.parametrize("kind", ["method", "network", "backbone"])
def test_literal_optional_and_list_in_what_the_settings_name(kind):
    for options in GOOD:
        assert getattr(resolve("small", **{kind: "mine", f"{kind}_options": options}), f"{kind}_options") == {
            **options
        }
    with pytest.raises(ConfigError) as error:
        resolve("small", **{kind: "mine", f"{kind}_options": {**BAD, "size": 1}})
    assert error.value.problems[:3] == [
        f"unknown {kind}.mode 'slwo'. Did you mean 'slow'? Available: fast, slow",
        f"{kind}.sizes must be a list of int or None, got [1.5]",
        f"{kind}.rate must be float or None, got 'x'",
    ]
    assert f"unknown option of {kind} 'mine': 'size'. Did you mean 'sizes'?" in error.value.problems[3]


def test_literal_optional_and_list_in_a_reader():
    for options in GOOD:
        assert load("mine", **options) == {"mode": "fast", "sizes": None, "rate": None, **options}
    assert load("mine", mode="slow", sizes="1,2", rate="none") == {
        "mode": "slow",
        "sizes": [1, 2],
        "rate": None,
    }
    with pytest.raises(ConfigError) as error:
        load("mine", **BAD)
    assert error.value.problems == [
        "unknown value of option mode: 'slwo'. Did you mean 'slow'? Available: fast, slow",
        "option sizes of source 'mine' must be values separated by commas, each a whole number, got [1.5]",
        "option rate of source 'mine' must be a number, got 'x'",
    ]


def test_a_backbone_gets_its_own_options():
    assert set(option_types("backbone", "mine")) == {
        "weights",
        "train_stages",
        "frozen_norms",
        "scales",
        "mode",
        "sizes",
        "rate",
    }
    network = build_network(
        3,
        network="pooled",
        backbone="mine",
        weights=None,
        backbone_options={"mode": "slow", "sizes": [1], "train_stages": 1},
    )
    assert network.backbone.given == ("slow", [1], None) and network.backbone.train_stages == 1


def test_numbers_of_numpy_are_settings():
    settings = resolve(
        "small", epochs=np.int64(3), lr=np.float32(0.5), method_options={"alpha": np.float64(0.5)}
    )
    assert (settings.epochs, settings.lr, settings.method_options["alpha"]) == (3, 0.5, 0.5)
    assert type(settings.epochs) is int and type(settings.method_options["alpha"]) is float


# what sarb has


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, registry in (("method", METHODS), ("network", NETWORKS), ("backbone", BACKBONES))
        for name in registry
    ],
)
def test_every_option_has_a_type(kind, name):
    types = option_types(kind, name)
    assert Any not in types.values()
    assert types or name in ("an", "wan", "iu")


@pytest.mark.parametrize("name", list(DATASETS))
def test_every_default_of_a_reader_has_its_type(name):
    reader = find("data source", DATASETS, name)
    hints = hints_of(reader)
    for parameter in inspect.signature(reader).parameters.values():
        assert hints[parameter.name] is not Any
        assert parameter.default is parameter.empty or matches(parameter.default, hints[parameter.name])


def test_every_default_setting_is_valid():
    assert check(Settings().as_dict(), hints_of(Settings), unknown=str) == []
