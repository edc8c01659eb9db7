"""Concepts and nodes: a node is a WordNet synset with at least one of the thousand concepts at or below it."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parent / "table.json"


@dataclass(frozen=True)
class Node:
    """A synset.

    Attributes:
        id: "n" and WordNet 3.0's offset, e.g. "n02391049".
        words: what it is called, the usual word first -> rank of this sense among the word's senses that are
            an animal, artefact, food, object, person, plant, substance or concept; 0 for any other sense.
        concepts: indices of the concepts at or below it.
        below: ids of the nodes strictly below it.
    """

    id: str
    words: dict[str, int]
    concepts: frozenset[int]
    below: frozenset[str]

    @property
    def name(self) -> str:
        """The usual word."""
        return next(iter(self.words))


@dataclass(frozen=True)
class WordNet:
    """The table, indexed.

    Attributes:
        ids: the concepts, in the order of the classifier's outputs.
        nodes: id -> node.
        senses: word in lower case -> ids of the nodes it names, lowest rank first, rank 0 last.
        joined: word without spaces and hyphens -> words.
    """

    ids: tuple[str, ...]
    nodes: dict[str, Node]
    senses: dict[str, tuple[str, ...]]
    joined: dict[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """The usual word for each concept; two words occur twice ("crane", "maillot")."""
        return tuple(self.nodes[id].name for id in self.ids)

    def rank(self, word: str, id: str) -> int:
        """Return the rank of a sense of a word in lower case; 0 for a sense of a kind that is not ranked."""
        return next(rank for known, rank in self.nodes[id].words.items() if known.lower() == word)


def join(word: str) -> str:
    """Return a word without spaces, hyphens and underscores."""
    return word.replace(" ", "").replace("-", "").replace("_", "")


@cache
def wordnet() -> WordNet:
    """Read the table, once."""
    stored = json.loads(TABLE.read_text(encoding="utf-8"))
    index = {id: number for number, id in enumerate(stored["concepts"])}
    concepts: dict[str, set[int]] = defaultdict(set)
    below: dict[str, set[str]] = defaultdict(set)
    for id, _, parents in reversed(stored["nodes"]):  # children come after their parents
        if id in index:
            concepts[id].add(index[id])
        for parent in parents:
            concepts[parent] |= concepts[id]
            below[parent] |= {id, *below[id]}
    nodes = {
        id: Node(id, words, frozenset(concepts[id]), frozenset(below[id])) for id, words, _ in stored["nodes"]
    }
    ranked: dict[str, list[tuple[bool, int, str]]] = defaultdict(list)
    for node in nodes.values():
        for word, rank in node.words.items():
            ranked[word.lower()].append((rank == 0, rank, node.id))
    joined: dict[str, list[str]] = defaultdict(list)
    for word in sorted(ranked):
        joined[join(word)].append(word)
    return WordNet(
        ids=tuple(stored["concepts"]),
        nodes=nodes,
        senses={word: tuple(id for *_, id in sorted(found)) for word, found in ranked.items()},
        joined={word: tuple(found) for word, found in joined.items()},
    )
