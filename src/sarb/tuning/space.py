"""What a search tries: ranges and choices of settings, as text, checked against the settings that exist."""

from __future__ import annotations

import copy
import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sarb.errors import ConfigError, unknown_name
from sarb.options import hints_of, matches
from sarb.registry import METHODS, find
from sarb.settings import SECTIONS, Settings, option_types, resolve

#: section of a name -> the key of its table in the options of :func:`sarb.settings.resolve`
TABLES = {
    "method": "method_options",
    "network": "network_options",
    "backbone": "backbone_options",
    "lr": "lr_scale",
}
#: the default range of the learning rate is its own value divided and multiplied by this
LR_FACTOR = 10
EXAMPLE = "e.g. lr=1e-4..1e-1:log, epochs=5..20 or method.claims=strict,names"


@dataclass(frozen=True)
class Dimension:
    """One setting and its values: a range with ends, or choices.

    Attributes:
        name: as for ``--set``.
        low, high: ends of a range; a range of ints is tried in whole numbers.
        log: whether the range is searched on a logarithmic scale.
        choices: what is tried instead of a range.
    """

    name: str
    low: float = 0
    high: float = 0
    log: bool = False
    choices: tuple[Any, ...] = ()

    def ends(self) -> tuple[Any, ...]:
        """Values that show whether the setting accepts them all."""
        return self.choices or (self.low, self.high)

    def points(self) -> tuple[Any, ...]:
        """All values; none if there are infinitely many."""
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return self.choices or (tuple(range(int(self.low), int(self.high) + 1)) if whole else ())

    def __str__(self) -> str:
        if self.choices:
            return f"{self.name}={','.join(str(choice) for choice in self.choices)}"
        return f"{self.name}={self.low!r}..{self.high!r}{':log' if self.log else ''}"


def read_dimension(text: str) -> Dimension:
    """Read ``lr=1e-4..1e-1:log`` or ``method.claims=strict,names``; a range of whole numbers stays one of ints.

    >>> read_dimension("lr=1e-4..0.1:log")
    Dimension(name='lr', low=0.0001, high=0.1, log=True, choices=())
    """
    name, equals, values = (part.strip() for part in text.partition("="))
    name = name.removeprefix("train.")
    if not (equals and name and values):
        raise ConfigError([f"{text}: expected NAME=low..high or NAME=a,b,c, {EXAMPLE}"])
    if ".." not in values:
        choices = tuple(_choice(part.strip()) for part in values.split(","))
        if len({repr(choice) for choice in choices}) < 2:
            raise ConfigError([f"{text}: expected at least two different values, or low..high, {EXAMPLE}"])
        return Dimension(name, choices=choices)
    ends, colon, scale = values.partition(":")
    if colon and scale.strip() != "log":
        raise ConfigError([f"{text}: " + unknown_name("scale", scale.strip(), ["log"])])
    first, _, last = ends.partition("..")
    try:
        low, high = _number(first), _number(last)
    except ValueError as error:
        raise ConfigError([f"{text}: expected two numbers, low..high, {EXAMPLE}"]) from error
    if not low < high:
        raise ConfigError([f"{text}: the low end must be below the high end"])
    if colon and low <= 0:
        raise ConfigError([f"{text}: a logarithmic range begins above 0"])
    return Dimension(name, low, high, bool(colon))


def _choice(text: str) -> Any:
    """A value as ``--set`` reads it."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return {"True": True, "False": False, "none": None, "None": None}.get(text, text)


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not math.isfinite(number):
            raise
        return number


def put(options: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a training with other values of settings, named as for ``--set``."""
    changed = copy.deepcopy(dict(options))
    for name, value in values.items():
        where, _, key = name.rpartition(".")
        (changed.setdefault(TABLES[where], {}) if where else changed)[key] = value
    return changed


def default_space(settings: Settings) -> list[str]:
    """What is searched if nothing is said: the learning rate, and what the method itself names."""
    method = find("method", METHODS, settings.method)
    own = [f"method.{name}={values}" for name, values in method.search.items()]
    if method.fitted:
        return own
    return [f"lr={settings.lr / LR_FACTOR:.3g}..{settings.lr * LR_FACTOR:.3g}:log", *own]


def read_space(
    texts: Sequence[str], recipe: Mapping[str, Any], options: Mapping[str, Any], taken: Sequence[str] = ()
) -> list[Dimension]:
    """Read all dimensions, and check that the settings accept their ends.

    Args:
        texts: ``NAME=low..high[:log]`` or ``NAME=a,b,c``.
        recipe: content of the recipe.
        options: everything else that was set, without which the names cannot be judged.
        taken: names that were set; they cannot be searched, too.

    Raises:
        ConfigError: everything that is wrong, in one message.
    """
    settings = resolve(recipe, **options)
    problems: list[str] = []
    space: list[Dimension] = []
    for text in texts:
        try:
            dimension = read_dimension(text)
            wrong = _problems(dimension, recipe, options)
            space.append(dimension if wrong else _typed(dimension, settings))
        except ConfigError as error:
            wrong = error.problems
        problems += [f"search {text}: {problem.removeprefix(f'{text}: ')}" for problem in wrong]
    names = [dimension.name for dimension in space]
    problems += [
        f"search: {name} is searched twice" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    problems += [f"search: {name} is set as well; leave one of them out" for name in names if name in taken]
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    return space


def _problems(dimension: Dimension, recipe: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    where = dimension.name.rpartition(".")[0]
    if where == "data":
        return ["options of the data are the same in all trials: give them as -o key=value"]
    if where and where not in TABLES:
        return [unknown_name("section", where, SECTIONS)]
    found = []
    for value in dimension.ends():
        if isinstance(value, (list, dict)):
            return ["lists and tables cannot be searched, only numbers, texts, true and false"]
        if value is None and not where:
            return ["none cannot be searched here, because it means that the recipe decides"]
        try:
            resolve(recipe, **put(options, {dimension.name: value}))
        except ConfigError as error:
            found += error.problems
    return list(dict.fromkeys(found))


def _typed(dimension: Dimension, settings: Settings) -> Dimension:
    """A range of floats where the setting takes floats, of ints where it takes only those."""
    if dimension.choices or not _accepts_fractions(dimension.name, settings):
        return dimension
    return Dimension(dimension.name, float(dimension.low), float(dimension.high), dimension.log)


def _accepts_fractions(name: str, settings: Settings) -> bool:
    where, _, key = name.rpartition(".")
    if where == "lr":
        return True
    if not where:
        return matches(0.5, hints_of(Settings)[key])
    hints = option_types(where, getattr(settings, where))
    return matches(0.5, hints.get(key, float))


def grid_of(space: Sequence[Dimension]) -> list[dict[str, Any]]:
    """All combinations of values, the last dimension fastest.

    Raises:
        ConfigError: a range with infinitely many values.
    """
    endless = [str(dimension) for dimension in space if not dimension.points()]
    if endless:
        raise ConfigError(
            [f"sampler grid: {text} has infinitely many values; list some, NAME=a,b,c" for text in endless]
        )
    names = [dimension.name for dimension in space]
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(dimension.points() for dimension in space))
    ]
