import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.data.readers.list_table import load_list
from sarb.errors import ConfigError, DataError


@pytest.fixture
def table(tmp_path):
    def write(text, name="list.csv"):
        (tmp_path / name).write_bytes(text.encode())
        return tmp_path / name

    return write


def rows(data):
    return {
        name: row.tolist()
        for name, row in zip(data.train.labels.paths, data.train.labels.values, strict=True)
    }


def test_listed_is_present_and_the_rest_must_be_said(table):
    path = table("fname,labels\na.jpg,cat;dog\nb.jpg,\nc.jpg,dog; ant\n")
    data = load_list(path, unlisted="absent")
    assert data.categories == ("ant", "cat", "dog")
    assert rows(data) == {"a.jpg": [-1, 1, 1], "b.jpg": [-1, -1, -1], "c.jpg": [1, -1, 1]}
    assert data.notes == {"unlisted": "absent", "label_delimiter": ";", "file_column": "fname"}
    assert data.train.lines.tolist() == [2, 3, 4]
    assert rows(load_list(path, unlisted="unknown"))["b.jpg"] == [0, 0, 0]
    with pytest.raises(DataError) as error:
        load_list(path)
    assert "-o unlisted=unknown: 4 present, 0 absent, 5 unknown" in str(error.value)
    assert "-o unlisted=absent: 4 present, 5 absent, 0 unknown" in str(error.value)
    with pytest.raises(ConfigError, match="value of option unlisted: 'present'"):
        load_list(path, unlisted="present")


@pytest.mark.parametrize(
    ("cells", "option", "mark", "expected"),
    [
        (["cat", "dog"], "auto", "none", {"cat", "dog"}),
        (["cat|dog", ""], "auto", "|", {"cat", "dog"}),
        (["cat, dog", ""], "auto", ",", {"cat", "dog"}),
        (["cat ; dog", "dog"], "auto", ";", {"cat", "dog"}),
        (["hot dog", "cat"], "none", "none", {"hot dog", "cat"}),
        (["hot dog", "cat"], "space", "space", {"hot", "dog", "cat"}),
        (["hot dog;cat", ""], ";", ";", {"hot dog", "cat"}),
        (["a\tb", ""], "tab", "tab", {"a", "b"}),
        (["a/b", ""], "/", "/", {"a", "b"}),
        ([";cat;;dog;", ""], "auto", ";", {"cat", "dog"}),
    ],
)
def test_delimiters(table, cells, option, mark, expected):
    text = "".join(f'{number}.jpg,"{cell}"\n' for number, cell in enumerate(cells))
    data = load_list(table(f"fname,labels\n{text}"), unlisted="absent", label_delimiter=option)
    assert (set(data.categories), data.notes["label_delimiter"]) == (expected, mark)
    again = load(f"list:{data.train.source}", unlisted="absent", label_delimiter=mark, check_files="no")
    assert again.categories == data.categories


@pytest.mark.parametrize(
    ("cells", "readings"),
    [
        (
            ["horse person", "car"],
            [
                "-o label_delimiter=space: 3 categories: car, horse, person",
                "-o label_delimiter=none: 2 categories: car, horse person",
            ],
        ),
        (
            ["hot dog;cat", "a"],
            [
                "-o label_delimiter=';': 3 categories: a, cat, hot dog",
                "=space",
                "=none",
            ],
        ),
        (["a;b|c", "a"], ["';'", "'|'", "=none"]),
        (["a\tb", "a"], ["=tab", "=none"]),
    ],
)
def test_what_can_be_read_in_more_than_one_way(table, cells, readings):
    text = "".join(f'{number}.jpg,"{cell}"\n' for number, cell in enumerate(cells))
    with pytest.raises(DataError, match=r"list\.csv: declare what separates the labels") as error:
        load_list(table(f"fname,labels\n{text}"))
    assert all(reading in str(error.value) for reading in readings)
    assert "add -o unlisted=unknown or -o unlisted=absent" in str(error.value)
    with pytest.raises(
        ConfigError, match="label_delimiter must be one character, space, tab or none, got '::'"
    ):
        load_list(table(f"fname,labels\n{text}"), label_delimiter="::")


@pytest.mark.parametrize("words", [("True", "False"), ("1", "0"), ("yes", "NO"), ("1.0", "0.0")])
def test_is_valid(table, words):
    path = table(f"fname,labels,is_valid\na.jpg,cat,{words[1]}\nb.jpg,cat,{words[0]}\nc.jpg,dog,{words[1]}\n")
    data = load_list(path, unlisted="absent")
    assert (data.train.labels.paths, data.valid.labels.paths, len(data.test)) == (
        ("a.jpg", "c.jpg"),
        ("b.jpg",),
        0,
    )
    data = load_list(path, unlisted="absent", is_valid="test")
    assert (data.test.labels.paths, data.valid) == (("b.jpg",), None)
    assert len(load_list(path, unlisted="absent", is_valid="ignore").train) == 3


def test_split_column(table):
    path = table("file_name,labels,split\na.jpg,cat,train\nb.jpg,cat,val\nc.jpg,dog,Test\n")
    data = load_list(path, unlisted="absent")
    assert [data.train.labels.paths, data.valid.labels.paths, data.test.labels.paths] == [
        ("a.jpg",),
        ("b.jpg",),
        ("c.jpg",),
    ]
    both = table("fname,labels,split,is_valid\na.jpg,cat,train,False\nb.jpg,cat,test,True\n")
    with pytest.raises(DataError, match="has columns is_valid and split; add -o is_valid=ignore"):
        load_list(both, unlisted="absent")
    assert load_list(both, unlisted="absent", is_valid="ignore").test.labels.paths == ("b.jpg",)


def test_declared_categories(table, tmp_path):
    path = table("fname,labels\na.jpg,dog\nb.jpg,cta\nc.jpg,cta\n")
    with pytest.raises(
        DataError, match=r"line 3: unknown category 'cta' \(2 times, first here\). Did you mean 'cat'"
    ):
        load_list(path, unlisted="absent", categories="dog,cat")
    table("fname,labels\na.jpg,dog\n")
    (tmp_path / "list.categories.txt").write_text("zebra\ndog\nant\n")
    data = load_list(path, unlisted="unknown")
    assert (data.categories, rows(data)) == (("zebra", "dog", "ant"), {"a.jpg": [0, 1, 0]})
    assert load_list(path, unlisted="unknown", categories="dog").categories == ("dog",)


def test_all_faults_at_once(table):
    text = (
        "fname,labels,is_valid\na.jpg,cat,maybe\nb.jpg,cat\na.jpg,dog,False\nc.jpg,cat,True\nc.jpg,cat,True\n"
    )
    with pytest.raises(DataError) as error:
        load(f"list:{table(text)}", unlisted="absent", check_files=False)
    assert "list.csv: 4 problems" in str(error.value)
    assert "line 2, column 'is_valid': value 'maybe'; expected True or False" in str(error.value)
    assert "line 3: 2 fields, but the header has 3" in str(error.value)
    assert "line 4: image 'a.jpg' occurs twice, on lines 2 and 4; they disagree about 'cat'" in str(
        error.value
    )
    assert "line 6: image 'c.jpg' occurs twice, on lines 5 and 6" in str(error.value)
    assert "c.jpg' occurs twice, on lines 5 and 6;" not in str(error.value)


def test_gathered_findings_and_a_reader_that_goes_on(table):
    path = table("fname,labels,note\na.jpg,cat,x\na.jpg,cat,x\n./a.jpg,cat,x\n,cat,x\nb.jpg,dog,x\n")
    with gather() as findings:
        data = load_list(path)
    assert rows(data) == {"a.jpg": [1, 0], "b.jpg": [0, 1]}
    assert data.notes["undecoded"]
    kinds = sorted(kind for _, kind in findings.counts)
    assert kinds == ["bad-name", "duplicate-row", "other-columns", "undeclared-unlisted"]
    assert findings.counts["error", "duplicate-row"] == 2


def test_warnings(table):
    path = table(
        "fname,labels\n" + "".join(f"{n}.jpg,person\n" for n in range(20)) + "x.jpg,personn\ny.jpg,cat;cat\n"
    )
    with pytest.warns(DataWarning) as caught:
        load_list(path, unlisted="absent")
    texts = [str(warning.message) for warning in caught]
    near = "line 22: label 'personn' occurs once. Did you mean 'person', which occurs 20 times?"
    assert any(near in text for text in texts)
    assert any("line 23: label 'cat' is listed twice" in text for text in texts)
    assert len(texts) == 2
    with pytest.warns(DataWarning, match="categories 'Cat' and 'cat' differ only in case"):
        load_list(table("fname,labels\na.jpg,cat\nb.jpg,Cat\n"), unlisted="absent")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; expected a header fname,labels"),
        ("fname,labels\n", "has a header but no rows"),
        ("fname,labels\na.jpg,\n", "no row lists any label"),
        (
            "a.jpg,cat\n",
            "line 1: the header has no column 'labels', only a.jpg, cat. Add -o labels_column=NAME",
        ),
        ("x,y,labels\na,b,cat\n", "line 1: the header has no column 'fname', only x, y, labels."),
        (
            "fname,label\na.jpg,cat\n",
            "no column 'labels', only fname, label. Did you mean 'label'? Add -o labels",
        ),
        ("fname;labels\na.jpg;cat\n", "the header contains no comma; add -o delimiter=';'"),
        ("fname\tlabels\na.jpg\tcat\n", "add -o delimiter=tab"),
        ("fname,file_name,labels\na.jpg,a.jpg,cat\n", "add -o file_column=fname or -o file_column=file_name"),
        ("fname,labels,labels\na.jpg,cat,dog\n", "column 'labels' occurs twice"),
    ],
)
def test_bad_files(table, text, message):
    with pytest.raises(DataError, match=r"list\.csv") as error:
        load_list(table(text), unlisted="absent")
    assert message in str(error.value)


def test_other_columns_delimiters_and_charsets(table, tmp_path):
    path = table("image;tags\na.jpg;cat,dog\n")
    data = load_list(path, unlisted="absent", file_column="image", labels_column="tags", delimiter=";")
    assert data.categories == ("cat", "dog")
    assert load_list(table("fname\tlabels\na.jpg\tcat\n", "list.tsv"), unlisted="absent").categories == (
        "cat",
    )
    (tmp_path / "latin.csv").write_bytes("fname,labels\na.jpg,Köln\n".encode("latin-1"))
    assert load_list(tmp_path / "latin.csv", unlisted="absent", charset="latin-1").categories == ("Köln",)
