"""Name evidence, first half: which of the backbone's concepts does a category's name mean?

The name is looked up among WordNet's nouns; the concepts at or below its first two senses are tied to it. Only the
name is used: no image and no label, so a tie can be wrong ("kite" is a bird), and whoever uses it must weigh it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import ConfigError, did_you_mean
from sarb.wordnet.table import Node, WordNet, join, wordnet

#: does a sense (word, node id) count?
Accept = Callable[[str, str], bool]
#: senses of a name that are used
SENSES = 2
#: a name with more concepts than this says too little to be tied
MOST = 200
#: the same for the last word of a name, which says less than the name
MOST_OF_LAST_WORD = 25
#: endings of plurals and what replaces them, as in WordNet's own look-up
PLURALS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)


@dataclass(frozen=True)
class Tie:
    """What one category is tied to.

    Attributes:
        category: its name.
        how: "name", "concept", "last word" or "by hand", see :func:`tie`; why it is not tied otherwise.
        word: the word of WordNet that was found, or several by hand; empty if none was.
        nodes: ids of the nodes with that word.
        concepts: indices of the concepts, in order; empty if the category is not tied.
    """

    category: str
    how: str
    word: str = ""
    nodes: tuple[str, ...] = ()
    concepts: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the concepts."""
        names = wordnet().names
        return tuple(names[index] for index in self.concepts)


@dataclass(frozen=True)
class Ties:
    """What all categories are tied to, in their order; indexing gives the :class:`Tie` of a category."""

    ties: tuple[Tie, ...]

    @property
    def matrix(self) -> NDArray[np.bool_]:
        """True (C, K) where a category is tied to a concept; K in the order of :attr:`ids`."""
        matrix = np.zeros((len(self.ties), len(self.ids)), dtype=bool)
        for row, tie in enumerate(self.ties):
            matrix[row, list(tie.concepts)] = True
        return matrix

    @property
    def ids(self) -> tuple[str, ...]:
        """WordNet ids of the K concepts."""
        return wordnet().ids

    @property
    def tied(self) -> NDArray[np.bool_]:
        """True (C,) where a category is tied to at least one concept."""
        return np.array([bool(tie.concepts) for tie in self.ties], dtype=bool)

    def __len__(self) -> int:
        return len(self.ties)

    def __iter__(self) -> Iterator[Tie]:
        return iter(self.ties)

    def __getitem__(self, row: int) -> Tie:
        return self.ties[row]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Category -> how, word, nodes, and concepts as {id: name}."""
        return {
            tie.category: {
                "how": tie.how,
                "word": tie.word,
                "nodes": list(tie.nodes),
                "concepts": dict(zip((self.ids[index] for index in tie.concepts), tie.names, strict=True)),
            }
            for tie in self.ties
        }


def tie(categories: Sequence[str], overrides: Mapping[str, Sequence[str]] | None = None) -> Ties:
    """Tie categories to concepts by their names.

    A name is looked up as written, with its words apart, joined or hyphenated, then as a plural. Its first two
    senses that are an animal, artefact, food, object, person, plant or substance count, and of these all concepts
    at or below, 200 at most. If they have none, a concept whose usual name it is counts in any sense ("concept").
    Failing that, a name of several words is looked up by its last word, 25 concepts at most. What lies at or below a
    node that has another category's name stays with that category.

    Args:
        categories: their names.
        overrides: category -> concepts by hand, as names of concepts, names of nodes above them (all their senses)
            or WordNet ids; an empty list unties the category, a text is a list of one.

    Raises:
        ConfigError: an override of a category or to a concept that does not exist.
    """
    table = wordnet()
    chosen = _by_hand(table, categories, overrides or {})
    named = [
        set(chosen[name].nodes) if name in chosen else set(table.senses.get(_find(table, name), ()))
        for name in categories
    ]
    owners: dict[str, int] = {}
    for nodes in named:
        for id in nodes:
            owners[id] = owners.get(id, 0) + 1
    return Ties(
        tuple(
            chosen[name] if name in chosen else _tie(table, name, _others(owners, own))
            for name, own in zip(categories, named, strict=True)
        )
    )


def _others(owners: Mapping[str, int], own: set[str]) -> frozenset[str]:
    """Nodes with the name of another category; a node that two categories share stays with both."""
    return frozenset(owners.keys() - own)


def _tie(table: WordNet, name: str, others: frozenset[str]) -> Tie:
    for how, part, accept, most in _attempts(table, name):
        word = _find(table, part, accept)
        if word:
            nodes = [table.nodes[id] for id in table.senses[word] if accept(word, id)]
            return _limited(table, Tie(name, how, word), nodes, others, most)
    return Tie(name, "no concept")


def _attempts(table: WordNet, name: str) -> list[tuple[str, str, Accept, int]]:
    """Ways to read a name, best first: what it is called, the text to look up, which senses count, concepts at most."""

    def early(word: str, id: str) -> bool:
        return 1 <= table.rank(word, id) <= SENSES

    def usual(word: str, id: str) -> bool:
        # "mouse": the third sense, but the concept has no better name
        return id in table.ids and table.nodes[id].name.lower() == word

    last = _words(name)[1:][-1:]
    return [
        ("name", name, early, MOST),
        ("concept", name, usual, MOST),
        *(("last word", word, early, MOST_OF_LAST_WORD) for word in last),
    ]


def _limited(table: WordNet, found: Tie, nodes: list[Node], others: frozenset[str], most: int) -> Tie:
    """Fill in nodes and concepts, or say why there are none."""
    kept = [node for node in nodes if node.id not in others]
    concepts = sorted(set().union(*(_without(table, node, others) for node in kept)))
    how = found.how
    if not concepts:
        how = "taken by other categories"
    elif len(concepts) > most:
        how = f"too wide, {len(concepts)} concepts"
        concepts = []
    return Tie(found.category, how, found.word, tuple(node.id for node in nodes), tuple(concepts))


def _without(table: WordNet, node: Node, others: frozenset[str]) -> frozenset[int]:
    """Concepts of a node without those of the nodes below it that other categories are named after."""
    return node.concepts.difference(*(table.nodes[id].concepts for id in node.below & others))


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[\s_-]+", name.lower()) if word]


def _any(word: str, id: str) -> bool:
    return True


def _find(table: WordNet, name: str, accept: Accept = _any) -> str:
    """Return the first spelling of a name that is a word with an accepted sense; "" if there is none."""
    for word in _spellings(table, name):
        if any(accept(word, id) for id in table.senses.get(word, ())):
            return word
    return ""


def _spellings(table: WordNet, name: str) -> list[str]:
    words = _words(name)
    plain = [" ".join(name.lower().split()), " ".join(words), "".join(words), "-".join(words)]
    single = [
        word[: -len(ending)] + instead
        for ending, instead in PLURALS
        for word in plain
        if word.endswith(ending)
    ]
    # "diningtable": words that were joined in the name
    return [word for word in [*plain, *single, *table.joined.get(join(name.lower()), ())] if word]


def _by_hand(
    table: WordNet, categories: Sequence[str], overrides: Mapping[str, Sequence[str]]
) -> dict[str, Tie]:
    problems = [
        f"tie of '{name}': no such category.{did_you_mean(name, categories)}"
        for name in overrides
        if name not in categories
    ]
    ties = {}
    for name, given in overrides.items():
        values = [given] if isinstance(given, str) and given else list(given)
        nodes: dict[str, None] = {}
        for value in values:
            found = _named(table, value)
            nodes.update(dict.fromkeys(found))
            if not found:
                near = did_you_mean(value, table.senses)
                problems.append(f"tie of '{name}': no concept or kind of concepts is called '{value}'.{near}")
        concepts = sorted(set().union(*(table.nodes[id].concepts for id in nodes)))
        how = "by hand" if concepts else "untied by hand"
        ties[name] = Tie(name, how, ", ".join(values), tuple(nodes), tuple(concepts))
    if problems:
        raise ConfigError(problems)
    return ties


def _named(table: WordNet, value: str) -> tuple[str, ...]:
    """Ids of the nodes that a value of an override names."""
    value = value.strip()
    return (value,) if value in table.nodes else table.senses.get(_find(table, value), ())
