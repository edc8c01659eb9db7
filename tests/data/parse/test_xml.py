import pytest

from sarb.data.parse.xml import parse
from sarb.errors import DataError


def read(path):
    """All calls, as (what, open elements, rest)."""
    calls = []
    parse(
        path,
        lambda where, attributes, line: calls.append(("start", "/".join(where), attributes, line)),
        lambda where, text: calls.append(("text", "/".join(where), text)),
        lambda where: calls.append(("end", "/".join(where))),
    )
    return calls


def test_elements_with_their_parents_attributes_and_lines(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text("<?xml version='1.0'?>\n<a>\n<b c='1' d='&lt;é'>x&amp;y</b></a>", encoding="utf-8")
    assert [call for call in read(path) if call[-1] != "\n"] == [
        ("start", "a", {}, 2),
        ("start", "a/b", {"c": "1", "d": "<é"}, 3),
        ("text", "a/b", "x&y"),
        ("end", "a/b"),
        ("end", "a"),
    ]


def test_text_larger_than_a_block_arrives_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("sarb.data.parse.xml.CHUNK", 7)
    path = tmp_path / "a.xml"
    path.write_text("<a>" + "é" * 1000 + "</a>", encoding="utf-8")
    assert "".join(call[2] for call in read(path) if call[0] == "text") == "é" * 1000


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_the_declared_encoding_is_used(tmp_path, charset):
    path = tmp_path / "a.xml"
    path.write_text(
        f"<?xml version='1.0' encoding='{charset.removesuffix('-sig')}'?><a>é</a>", encoding=charset
    )
    assert ("text", "a", "é") in read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.xml, line 1, column 1: not valid XML: no element found"),
        ("<a>\n<b></a>", "a.xml, line 2, column 6: not valid XML: mismatched tag"),
        ("<a>\n&b;</a>", "a.xml, line 2, column 1: not valid XML: undefined entity"),
        ("<a/>\n<b/>", "a.xml, line 2, column 1: not valid XML: junk after document element"),
        (
            "\n<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
            "a.xml, line 2: a document type declaration is not allowed",
        ),
        ("<a>\n" * 101, "a.xml, line 101: nested too deeply"),
        (
            "<?xml version='1.0' encoding='shift_jis'?><a/>",
            "a.xml, line 1: not valid XML: its encoding is not supported",
        ),
        ("<?xml version='1.0' encoding='nonsense'?><a/>", "a.xml, line 1.*: not valid XML"),
    ],
)
def test_faults_name_the_line(tmp_path, text, message):
    path = tmp_path / "a.xml"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read(path)
    assert error.value.findings[0].line


def test_an_unreadable_file(tmp_path):
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        read(tmp_path)
