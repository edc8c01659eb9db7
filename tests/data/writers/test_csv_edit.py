import codecs

import pytest

from sarb.data.writers.csv_edit import CsvStyle, edited
from sarb.errors import DataError


def copied(path, changes=None, delimiter=",", charset=None, added=()):
    """Copy a file with changes (line, column) -> text; return the bytes of the copy."""
    style = CsvStyle.of(path, delimiter, charset)
    changes = changes or {}

    def edit(line, cells):
        return {column: text for (at, column), text in changes.items() if at == line}

    out = path.with_name("out.csv")
    style.write(out, edited(style, path, edit, list(added)))
    return out.read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n",
        b"a,b\r\n1,2\r\n",
        b"a,b\r\n1,2",
        codecs.BOM_UTF8 + b'"a","b"\n"1","2"\n',
        b'a,"b\nc"\n\n"x ""y""",\r\n',
        b'a,b\nx"y, z\n',
        "ä,ö\n1,é\n".encode(),
    ],
)
def test_a_copy_without_changes_has_the_same_bytes(tmp_path, content):
    (tmp_path / "in.csv").write_bytes(content)
    assert copied(tmp_path / "in.csv") == content


@pytest.mark.parametrize(
    ("content", "changed"),
    [
        (b"f,x,y\r\na,1,\r\nb,,0\r\n", b"f,x,y\r\na,1,\r\nb,1,0\r\n"),
        (b'"f","x","y"\n"a","1",""\n"b","","0"\n', b'"f","x","y"\n"a","1",""\n"b","1","0"\n'),
        (b'"f","x","y"\n"a",1,\n"b",,0\n', b'"f","x","y"\n"a",1,\n"b",1,0\n'),
        (b'f,x,y\n"a,b",1,\n"b,c",,0', b'f,x,y\n"a,b",1,\n"b,c",1,0'),
    ],
    ids=["none", "all", "text only", "where needed"],
)
def test_a_new_cell_is_quoted_as_the_file_does_it(tmp_path, content, changed):
    (tmp_path / "in.csv").write_bytes(content)
    assert copied(tmp_path / "in.csv", {(3, 1): "1"}) == changed


def test_words_are_quoted_and_blanks_are_not(tmp_path):
    (tmp_path / "in.csv").write_bytes(b'"f","x"\n"a","yes"\n"b",\n')
    assert copied(tmp_path / "in.csv", {(3, 1): "no"}) == b'"f","x"\n"a","yes"\n"b","no"\n'
    assert copied(tmp_path / "in.csv", {(2, 1): ""}) == b'"f","x"\n"a",\n"b",\n'


def test_lines_are_counted_with_line_breaks_in_cells_and_columns_are_added(tmp_path):
    (tmp_path / "in.csv").write_bytes(b'f;x\n"a\nb";1\nc;2\n')
    done = copied(tmp_path / "in.csv", {(2, 2): "p", (4, 1): "3;4", (4, 2): "q"}, ";", added=["z"])
    assert done == b'f;x;z\n"a\nb";1;p\nc;"3;4";q\n'


@pytest.mark.parametrize("charset", ["latin-1", "utf-16", "cp1252"])
def test_character_sets(tmp_path, charset):
    (tmp_path / "in.csv").write_bytes("f,Hündin\na,1\n".encode(charset))
    assert copied(tmp_path / "in.csv", {(2, 1): "ö"}, charset=charset) == "f,Hündin\na,ö\n".encode(charset)


def test_what_the_character_set_does_not_have(tmp_path):
    (tmp_path / "in.csv").write_bytes("f,x\na,é\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"'Ж' cannot be written as iso8859-1"):
        copied(tmp_path / "in.csv", {(2, 1): "Ж"}, charset="latin-1")
    assert [file.name for file in tmp_path.iterdir()] == ["in.csv"]
