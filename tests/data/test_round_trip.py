"""Written tables read back the same in every format: labels, names, categories, order and splits."""

import os
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sarb.data import load
from sarb.data.assemble import divide, finish
from sarb.data.dataset import Data, Dataset
from sarb.data.writers.write import WRITERS, reader_of, write
from sarb.labels import LabelMatrix

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")

FILES = {
    "csv": "out.csv",
    "tsv": "out.tsv",
    "jsonl": "out.jsonl",
    "parquet": "out.parquet",
    "list": "out.csv",
    "npy": "out.npy",
    "folder": "metadata.csv",
}
AWKWARD = [
    "=1+1",
    "+a",
    "-a",
    "@a",
    "nan",
    "NaN",
    "None",
    "1",
    "0",
    "true",
    "NULL",
    " a",
    "a ",
    "a,b",
    'a"b',
    '"',
    "a\nb",
    "a\tb",
    "a\r",
    "a\r\nb",
    "é",
    "e\u0301",
    "שלום",
    "😀",
    "a;b",
    "a|b",
    "\ufeffa",
    "a\u2028b",
    "a\x85b",
    "x\x1f",
    "#a",
    "'",
    "\\",
    "{}",
    "a.b",
    "labels",
    "fname",
    "is_valid",
    "Split",
    "file_name ",
    "é/ü.jpg",
    "../a.jpg",
    "/abs/a.jpg",
]
#: how files spell their codes
NOTES = [
    {},
    {"encoding": "signed"},
    {"encoding": "signed", "codes": {"present": "+1", "absent": " -1 ", "unknown": "0"}},
    {"encoding": "binary"},
    {"encoding": "binary", "codes": {"present": "1.0", "absent": "0.0", "unknown": ""}},
    {"encoding": "minus_one_unknown", "codes": {"present": "1.0", "absent": "0", "unknown": "-1"}},
    {"encoding": "words"},
    {"encoding": "words", "codes": {"present": "yes", "absent": "no", "unknown": "?"}},
    {"encoding": "words", "codes": {"present": "True", "absent": "False", "unknown": ""}},
    {"encoding": "words", "codes": {"present": "PRESENT", "absent": "Absent", "unknown": "unknown"}},
]
TEXT = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8),
)


def folded(name):
    return unicodedata.normalize("NFC", name.strip()).casefold()


@st.composite
def tables(draw, form):
    """A data set that ``form`` can hold, with splits of its own or drawn ones."""
    text = TEXT
    if form in ("list", "npy"):  # one name per line
        text = text.map(lambda name: name.replace("\n", "_").replace("\r", "_").replace("\ufeff", "_"))
    kinds = text.map(lambda name: name.replace("\t", "_").strip()) if form in ("list", "npy") else text
    kinds = kinds.filter(lambda name: name.strip() and name not in ("file_name", "split"))
    categories = draw(st.lists(kinds, min_size=1, max_size=7, unique_by=folded))
    images = draw(
        st.lists(
            text.filter(str.strip), min_size=1, max_size=9, unique_by=lambda name: os.path.normpath(name)
        )
    )
    allowed = draw(st.sampled_from([(1, 0), (1, -1)])) if form == "list" else (1, 0, -1)
    cells = st.lists(st.sampled_from(allowed), min_size=len(categories), max_size=len(categories))
    values = [draw(cells) for _ in images]
    lines = np.cumsum([2, *(draw(st.integers(1, 3)) for _ in images[1:])])
    labels = LabelMatrix(np.array(values, np.int8), categories, images)
    whole = Dataset(labels, Path("/pictures"), "data", lines, Path("source.csv"))
    words = ["train", *(draw(st.sampled_from(["train", "test", "valid"])) for _ in images[1:])]
    notes = dict(draw(st.sampled_from(NOTES)))
    if draw(st.booleans()):
        return divide(whole, words, notes)
    drawn = {"test": draw(st.sampled_from([None, 0, 0.2, 1 / 3])), "split_seed": draw(st.integers(0, 3))}
    valid = 0.0 if "valid" in words else draw(st.sampled_from([0, 0.25]))
    words = [word.replace("test", "train") for word in words]
    return finish(divide(whole, words, notes), **drawn, valid=valid, check_files=False)


def content(data: Data):
    parts = {name: (part.labels, part.labels.paths) for name, part in data.splits.items()}
    return {
        name: (labels.categories, names, labels.values.tolist()) for name, (labels, names) in parts.items()
    }


def files(folder: Path):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("form", WRITERS)
@settings(max_examples=40, deadline=None)
@given(choice=st.data())
def test_the_same_comes_back_and_the_same_bytes_again(form, choice):
    data = choice.draw(tables(form))
    encodings = [None] if form == "list" else [None, "signed", "binary", "minus_one_unknown", "words"]
    encoding = choice.draw(st.sampled_from(encodings[:4] if form == "npy" else encodings))
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first")
        second = Path(folder, "second")
        options = write(data, first / FILES[form], form, encoding)
        again = load(f"{reader_of(form)}:{first / FILES[form]}", **options, check_files=False)
        assert content(again) == content(data)
        assert again.train.labels == data.train.labels
        assert again.train.root == data.train.root
        said = {name: str(value) for name, value in options.items()}  # as the command line hands them over
        assert content(
            load(f"{reader_of(form)}:{first / FILES[form]}", **said, check_files=False)
        ) == content(data)
        assert write(again, second / FILES[form], form) == options
        assert files(first) == files(second)


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet", "folder"])
@settings(max_examples=15, deadline=None)
@given(data=tables("csv"))
def test_a_csv_keeps_its_spelling_on_the_way_through_another_format(form, data):
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first.csv")
        other = Path(folder, FILES[form])
        last = Path(folder, "last.csv")
        read = load(f"table:{first}", **write(data, first), check_files=False)
        read = load(f"{reader_of(form)}:{other}", **write(read, other, form), check_files=False)
        write(read, last)
        assert last.read_bytes() == first.read_bytes()
