import pytest

from sarb.data.check.problems import gather
from sarb.data.parse.text import STRIDE, csv_rows, read_text, survey, text_lines, watch
from sarb.errors import ConfigError, DataError


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "a.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def kinds(path):
    with gather() as found:
        codec = survey(path)
    return codec, [(finding.level, finding.kind, finding.line) for finding in found.shown]


def test_survey_notes_mark_and_line_ends(write):
    assert kinds(write("a\nb\n")) == ("utf-8-sig", [])
    assert kinds(write(b"\xef\xbb\xbfa\r\nb\r\n")) == ("utf-8-sig", [("note", "bom", 1)])
    assert kinds(write(b"a\r\nb\nc")) == ("utf-8-sig", [("note", "crlf", None)])


def test_a_line_end_across_two_blocks_is_one(write, monkeypatch):
    monkeypatch.setattr("sarb.data.parse.text.CHUNK", 2)
    assert kinds(write(b"a\r\nb\r\n")) == kinds(write(b"ab\r\n")) == ("utf-8-sig", [])
    assert kinds(write(b"ab\r\nc\n")) == ("utf-8-sig", [("note", "crlf", None)])


@pytest.mark.parametrize("before", ["a\n" * 4, "ä\n" * 3_000_000])
def test_text_that_is_not_utf8_names_the_line(write, before):
    path, line = write(before.encode() + b"caf\xe9\n"), before.count("\n") + 1
    with pytest.raises(
        DataError, match=rf"a\.txt, line {line}: not UTF-8 text \(byte 0xe9\).*-o charset=latin-1"
    ):
        survey(path)
    assert kinds(path) == ("latin-1", [("error", "not-utf8", line)])
    assert read_text(path, "latin-1").endswith("café\n")


def test_utf16_is_recognised(write):
    path = write("a,b\n".encode("utf-16"))
    with pytest.raises(DataError, match="-o charset=utf-16"):
        survey(path)
    assert read_text(path, "utf-16") == "a,b\n"
    with pytest.raises(DataError, match=r"a\.txt.*not utf-16 text"):
        read_text(write(b"\xff\xfea"), "utf-16")
    with pytest.raises(DataError, match=r"a\.txt, line 1: not utf-16 text"):
        list(csv_rows(write(b"\xff\xfea"), charset="utf-16"))
    with pytest.raises(ConfigError, match="unknown character set 'utf-88'"):
        survey(path, "utf-88")


def test_unreadable_files(tmp_path):
    for read in (
        survey,
        read_text,
        lambda path: list(csv_rows(path)),
        lambda path: read_text(path, "latin-1"),
    ):
        with pytest.raises(DataError, match="cannot be read"):
            read(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        list(csv_rows(tmp_path / "none", charset="latin-1"))


def test_lines_are_exact(write):
    text = " a \r\n\n\u2028b\x0c\n"
    assert list(text_lines(write(text))) == [(1, " a "), (3, "\u2028b\x0c")]


def test_rows_carry_the_number_of_their_first_line(write):
    path = write('a,b\r\n\r\n"x\ny",1\n"say ""hi""",2\n')
    assert list(csv_rows(path)) == [(1, ["a", "b"]), (3, ["x\ny", "1"]), (5, ['say "hi"', "2"])]
    assert list(csv_rows(write("a\tb\n"), "tab")) == [(1, ["a", "b"])]
    assert list(csv_rows(write("a\rb\r"))) == [(1, ["a"]), (2, ["b"])]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('a,b\nx,"never closed\ny,1\n', 2, "a quote that is never closed"),
        ('a,b\n"x"y,1\n', 2, "expected after"),
        ("a,b\n" + "x" * 200_000 + ",1\n", 2, "field larger"),
    ],
)
def test_broken_csv_names_the_line(write, text, line, reason):
    with pytest.raises(DataError, match=rf"a\.txt, line {line}: not a CSV file .*{reason}"):
        list(csv_rows(write(text)))


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_impossible_delimiters(write, delimiter):
    with pytest.raises(ConfigError, match="one character or 'tab'"):
        list(csv_rows(write("a\n"), delimiter))


def test_who_watches_hears_of_progress(write):
    seen = []
    path = write("a,b\n" * (2 * STRIDE + 5))
    with watch(seen.append):
        assert len(list(csv_rows(path))) == 2 * STRIDE + 5
    assert seen == [STRIDE, STRIDE]
    list(csv_rows(path))
    assert len(seen) == 2
