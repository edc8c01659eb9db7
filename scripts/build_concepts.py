"""Build src/sarb/wordnet/table.json: ImageNet's thousand concepts and what WordNet calls them and their kinds.

$ apt-get install -y wordnet-base && pip download --no-deps timm
$ python scripts/build_concepts.py --wheel timm-*.whl

Reads ``index.noun`` and ``data.noun`` of Debian's ``wordnet-base`` and the order of the thousand from timm's
wheel (``imagenet_synsets.txt``). A node is a synset with at least one concept at or below it. Ranks count
senses that can be seen (of one of ``KINDS``, or a concept) and start at 1, for all senses of the word, tied or
not; 0 is any other sense.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
ORDER = "timm/data/_info/imagenet_synsets.txt"
#: lexicographer files of WordNet 3.0: animal, artefact, food, object, person, plant, substance
KINDS = {5, 6, 13, 17, 18, 20, 27}
#: the top nodes of those kinds, in that order, which WordNet keeps in a file of their own
TOPS = {"00015388", "00021939", "00021265", "00002684", "00007846", "00017222", "00019613"}


class Nouns:
    """WordNet's nouns: words and parents of each synset, synsets of each word, first sense first."""

    def __init__(self, folder: Path) -> None:
        self.words: dict[str, list[str]] = {}
        self.parents: dict[str, list[str]] = {}
        self.seen: set[str] = set()
        for line in _lines(folder / "data.noun"):
            self._add(line.split(" | ")[0].split())
        self.senses = {
            fields[0]: fields[-int(fields[2]) :] for fields in map(str.split, _lines(folder / "index.noun"))
        }

    def _add(self, fields: list[str]) -> None:
        offset = fields[0]
        count = int(fields[3], 16)
        self.words[offset] = fields[4 : 4 + 2 * count : 2]
        pointers = fields[5 + 2 * count :]
        self.parents[offset] = [
            pointers[place + 1] for place in range(0, len(pointers), 4) if pointers[place] in ("@", "@i")
        ]
        if int(fields[1]) in KINDS or offset in TOPS:
            self.seen.add(offset)

    def rank(self, word: str, offset: str) -> int:
        """Return the rank of a sense of a word among those of the kinds that can be seen, or 0."""
        senses = [sense for sense in self.senses[word.lower()] if sense in self.seen]
        return senses.index(offset) + 1 if offset in senses else 0


def _lines(file: Path) -> list[str]:
    # The licence at the top of each file is indented.
    return [line for line in file.read_text(encoding="latin-1").splitlines() if not line.startswith("  ")]


def build(nouns: Nouns, order: list[str]) -> dict[str, list[list[object]]]:
    """Return {"concepts": [id], "nodes": [[id, {word: rank}, [parent id]]]}; parents come before children."""
    unknown = [name for name in order if name[1:] not in nouns.words]
    if len(order) != 1000 or unknown:
        raise SystemExit(
            f"expected the thousand of ImageNet, got {len(order)}; not in WordNet: {unknown[:5]}"
        )
    depth: dict[str, int] = defaultdict(int)

    def climb(offset: str) -> int:
        if offset not in depth:
            depth[offset] = 1 + max((climb(parent) for parent in nouns.parents[offset]), default=0)
        return depth[offset]

    for name in order:
        climb(name[1:])
        nouns.seen.add(name[1:])  # "traffic light" is in the file of communication
    nodes = [
        [
            f"n{offset}",
            {word.replace("_", " "): nouns.rank(word, offset) for word in nouns.words[offset]},
            [f"n{parent}" for parent in nouns.parents[offset]],
        ]
        for offset in sorted(depth, key=lambda offset: (depth[offset], offset))
    ]
    return {"concepts": list(order), "nodes": nodes}  # type: ignore[dict-item, list-item]


def text(table: dict[str, list[list[object]]]) -> str:
    """Return JSON with a node per line, so that a change can be read."""
    nodes = ",\n".join(json.dumps(node, ensure_ascii=False, separators=(",", ":")) for node in table["nodes"])
    return f'{{"concepts":{json.dumps(table["concepts"], separators=(",", ":"))},\n"nodes":[\n{nodes}\n]}}\n'


def licence(folder: Path) -> str:
    """Return the licence that opens each of WordNet's files, without its line numbers."""
    head = [line for line in (folder / "data.noun").open(encoding="latin-1") if line.startswith("  ")]
    return "".join(line.strip().partition(" ")[2].rstrip() + "\n" for line in head)


def main() -> None:
    """Write the table and the licence."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wheel", type=Path, required=True, help="timm's wheel")
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="folder of data.noun"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "src/sarb/wordnet", help="folder to write into")
    arguments = parser.parse_args()
    with zipfile.ZipFile(arguments.wheel) as wheel:
        order = wheel.read(ORDER).decode().split()
    table = build(Nouns(arguments.wordnet), order)
    (arguments.out / "table.json").write_text(text(table), encoding="utf-8")
    (arguments.out / "LICENSE.txt").write_text(licence(arguments.wordnet), encoding="utf-8")
    print(f"{len(order)} concepts, {len(table['nodes'])} nodes -> {arguments.out}")


if __name__ == "__main__":
    main()
