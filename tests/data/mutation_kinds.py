"""Damage that knows the format: tables, lists, JSON, XML, NumPy arrays and Parquet."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.data.mutations import WORDS, Mutation, kind, spans

VALUES: list[Any] = [
    *(None, True, -1, 1.5, 0, 10**30, "", "maybe", "é", [], {}, [1], ["a", "a"], [[["x"]]], {"id": 1}),
    *(float("nan"), float("inf"), "\ud800", "a\0b", "x" * 300, "../../etc/passwd", -0.0, [None], [{}]),
]
LAUGHS = b"<!DOCTYPE lolz [" + b"".join(
    b'<!ENTITY l%d "%s">' % (number, b"&l%d;" % (number - 1) * 10 if number else b"lol")
    for number in range(10)
)


def _table(data: bytes) -> tuple[list[list[str]], str]:
    text = data.decode()
    mark = "\t" if "\t" in text.split("\n")[0] else ","
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=mark)), mark


def _written(rows: list[list[str]], mark: str) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=mark, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


@kind("csv")
def column_dropped(data: bytes, draw: random.Random) -> bytes:
    rows, mark = _table(data)
    place = draw.randrange(len(rows[0]))
    return _written([row[:place] + row[place + 1 :] for row in rows], mark)


@kind("csv")
def columns_swapped(data: bytes, draw: random.Random) -> bytes:
    rows, mark = _table(data)
    one = draw.randrange(len(rows[0]))
    two = draw.randrange(len(rows[0]))
    for row in rows[draw.randrange(2) :]:
        row[one], row[two] = row[two], row[one]
    return _written(rows, mark)


@kind("csv")
def delimiter_swapped(data: bytes, draw: random.Random) -> bytes:
    rows, mark = _table(data)
    return _written(rows, draw.choice([other for other in ";\t,|" if other != mark]))


@kind("csv")
def wrong_value(data: bytes, draw: random.Random) -> Mutation:
    rows, mark = _table(data)
    row = draw.choice(range(1, len(rows)))
    rows[row][draw.randrange(len(rows[row]))] = draw.choice(WORDS)
    return Mutation("wrong value", _written(rows, mark), line=row + 1)


@kind("csv")
def extra_field(data: bytes, draw: random.Random) -> Mutation:
    rows, mark = _table(data)
    row = draw.choice(range(1, len(rows)))
    rows[row].insert(draw.randrange(len(rows[row])), draw.choice(WORDS))
    return Mutation("extra field", _written(rows, mark), line=row + 1)


@kind("csv")
def field_lost(data: bytes, draw: random.Random) -> Mutation:
    rows, mark = _table(data)
    row = draw.choice(range(1, len(rows)))
    del rows[row][draw.randrange(len(rows[row]))]
    return Mutation("field lost", _written(rows, mark), line=row + 1)


@kind("csv")
def wrong_header(data: bytes, draw: random.Random) -> bytes:
    rows, mark = _table(data)
    rows[0][draw.randrange(len(rows[0]))] = draw.choice([*WORDS, *rows[0]])
    return _written(rows, mark)


@kind("txt")
def wrong_word(data: bytes, draw: random.Random) -> bytes:
    start, end = draw.choice(spans(rb"\S+", data))
    return data[:start] + draw.choice(WORDS).encode() + data[end:]


@kind("txt")
def extra_word(data: bytes, draw: random.Random) -> bytes:
    place = draw.choice(spans(rb"\S+", data))[1]
    return data[:place] + b" " + draw.choice(WORDS).encode() + data[place:]


class _Json:
    """A JSON file, or one line of a file of JSON lines, and every place in it: (holder, key)."""

    def __init__(self, data: bytes, draw: random.Random) -> None:
        self.draw = draw
        self.lines = data.splitlines()
        self.row = -1
        try:
            self.value = json.loads(data)
        except json.JSONDecodeError:
            self.row = draw.randrange(len(self.lines))
            self.value = json.loads(self.lines[self.row])
        self.places: list[tuple[Any, Any]] = []
        self._walk(self.value)

    def _walk(self, value: Any) -> None:
        keys: Iterable[Any] = ()
        if isinstance(value, dict):
            keys = list(value)
        elif isinstance(value, list):
            keys = range(len(value))
        for key in keys:
            self.places.append((value, key))
            self._walk(value[key])

    def place(self, kinds: tuple[type, ...] = (dict, list)) -> tuple[Any, Any]:
        return self.draw.choice([place for place in self.places if isinstance(place[0], kinds)])

    def mutation(self, name: str, deep: str = "") -> Mutation:
        one_line = self.row >= 0
        text = json.dumps(self.value, indent=None if one_line else 1)
        text = text.replace('"DEEP"', deep or '"DEEP"').encode()
        if one_line:
            text = b"\n".join([*self.lines[: self.row], text, *self.lines[self.row + 1 :], b""])
        return Mutation(name, text, line=self.row + 1 if one_line and name == "wrong type" else None)


@kind("json", "jsonl")
def wrong_type(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    holder, key = file.place()
    holder[key] = draw.choice(VALUES)
    return file.mutation("wrong type")


@kind("json", "jsonl")
def wrong_types(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    for holder, key in draw.sample(file.places, min(6, len(file.places))):
        if not isinstance(holder, list) or key < len(holder):
            holder[key] = draw.choice(VALUES)
    return file.mutation("wrong types")


@kind("json", "jsonl")
def key_dropped(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    holder, key = file.place((dict,))
    del holder[key]
    return file.mutation("key dropped")


@kind("json", "jsonl")
def key_renamed(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    holder, key = file.place((dict,))
    holder[draw.choice([*WORDS, *holder])] = holder.pop(key)
    return file.mutation("key renamed")


@kind("json", "jsonl")
def values_swapped(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    one, first = file.place()
    two, second = file.place()
    # copies: a value swapped with a part of itself would hold itself
    one[first], two[second] = json.loads(json.dumps([two[second], one[first]]))
    return file.mutation("values swapped")


@kind("json")
def element_doubled(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    lists = [holder[key] for holder, key in file.places if isinstance(holder[key], list) and holder[key]]
    lists += [file.value] if isinstance(file.value, list) else []
    chosen = draw.choice(lists)
    chosen.insert(draw.randrange(len(chosen) + 1), draw.choice(chosen))
    return file.mutation("element doubled")


@kind("json", "jsonl")
def nested_deeply(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    holder, key = file.place()
    holder[key] = "DEEP"
    depth = draw.choice([20, 900, 100_000])
    lists = "[" * depth + "]" * depth
    objects = '{"a":' * depth + "1" + "}" * depth
    return file.mutation("nested deeply", draw.choice([lists, objects]))


@kind("json", "jsonl")
def endless_number(data: bytes, draw: random.Random) -> Mutation:
    file = _Json(data, draw)
    holder, key = file.place()
    holder[key] = "DEEP"
    numbers = ["9" * 5000, "-" + "1" * 700, "1e99999", "1" * 400 + ".5"]
    return file.mutation("endless number", draw.choice(numbers))


@kind("xml")
def attribute_or_text_changed(data: bytes, draw: random.Random) -> bytes:
    start, end = draw.choice(spans(rb'(?<=")[^"<>]*(?=")|(?<=>)[^<>]+(?=<)', data))
    return data[:start] + draw.choice(WORDS).encode() + data[end:]


@kind("xml")
def attribute_dropped(data: bytes, draw: random.Random) -> bytes:
    start, end = draw.choice(spans(rb'\s\w+="[^"]*"', data))
    return data[:start] + data[end:]


@kind("xml")
def element_renamed(data: bytes, draw: random.Random) -> bytes:
    names = sorted({data[start + 1 : end] for start, end in spans(rb"<\w+", data)})
    old = draw.choice(names)
    new = draw.choice([*names, b"strange"])
    return data.replace(b"<" + old, b"<" + new).replace(b"</" + old, b"</" + new)


@kind("xml")
def element_unclosed(data: bytes, draw: random.Random) -> Mutation:
    start, end = draw.choice(spans(rb"</\w+>", data))
    return Mutation("element unclosed", data[:start] + data[end:], located=True)


@kind("xml")
def element_doubled_or_dropped(data: bytes, draw: random.Random) -> bytes:
    start, end = draw.choice(spans(rb"<(\w+)[^<>]*>[^<]*</\1>", data))
    return data[:start] + draw.choice([0, 2, 5000]) * data[start:end] + data[end:]


@kind("xml")
def nested_elements(data: bytes, draw: random.Random) -> bytes:
    place = draw.choice(spans(rb"</\w+>", data))[0]
    depth = draw.choice([50, 5000, 200_000])
    return data[:place] + b"<a>" * depth + b"</a>" * depth + data[place:]


@kind("xml")
def billion_laughs(data: bytes, draw: random.Random) -> Mutation:
    head = spans(rb"<\?xml[^>]*>", data)
    start = head[0][1] if head else 0
    place = draw.choice(spans(rb"</\w+>", data))[0]
    bomb = draw.choice([LAUGHS, b'<!DOCTYPE a [<!ENTITY l9 SYSTEM "file:///etc/passwd">']) + b"]>"
    return Mutation(
        "billion laughs", data[:start] + bomb + data[start:place] + b"&l9;" + data[place:], located=True
    )


@kind("xml")
def encoding_declared(data: bytes, draw: random.Random) -> bytes:
    head = spans(rb"<\?xml[^>]*>", data)
    start = head[0][1] if head else 0
    names = ["utf-7", "shift_jis", "nonsense", "utf-16", "latin-1", "rot13", "idna", "ascii", "base64", ""]
    return f'<?xml version="1.0" encoding="{draw.choice(names)}"?>'.encode() + data[start:]


@kind("npy")
def other_array(data: bytes, draw: random.Random) -> bytes:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    changed = array.astype(np.float64)
    changed[0, 0] = draw.choice([np.nan, np.inf, 0.5, 7, -0.0])
    others = [
        changed,
        array[0],
        array[None],
        array[:-1],
        array[:, :-1],
        array[:0],
        array[:, :0],
        array.astype(object),
        array.astype(str),
        array.astype(bool),
        array.astype(">i4"),
        np.asfortranarray(array),
        array.astype(complex),
        array.astype("datetime64[s]"),
        array.view([("a", array.dtype)]),
        np.array(1),
    ]
    file = io.BytesIO()
    np.save(file, draw.choice(others), allow_pickle=True)
    return file.getvalue()


@kind("npy")
def huge_shape(data: bytes, draw: random.Random) -> bytes:
    start, end = spans(rb"\(\d+, \d+\)", data)[0]
    shape = draw.choice([b"(99999999999, 99)", b"(-4, 3)", b"(9, 9)", b"(1e9, 3)"])
    return data[:start] + shape + data[end + max(0, len(shape) - (end - start)) :]


@kind("parquet")
def other_columns(data: bytes, draw: random.Random) -> bytes:
    import pyarrow
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(data))
    place = draw.randrange(table.num_columns)
    name = table.column_names[place]
    cells = [[1], {"a": 1}, b"\xff", "maybe", 2, 1.5, None, True, "", "\0"]
    column = pyarrow.array([draw.choice(cells)] * table.num_rows)
    others = [
        table.drop_columns([name]),
        table.set_column(place, name, column),
        table.append_column(name, column),
        table.append_column("", column),
        table.slice(0, 0),
        pyarrow.concat_tables([table, table]),
        table.select([]),
        table.append_column("more", column),
    ]
    file = io.BytesIO()
    parquet.write_table(draw.choice(others), file)
    return file.getvalue()
