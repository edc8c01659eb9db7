import pytest

import sarb.data.parse.codes
from sarb.data.check.problems import Problems, gather
from sarb.data.parse.codes import Codes
from sarb.errors import DataError


def codes(*rows, categories="xyz"):
    result = Codes(Problems("a.csv"), list(categories))
    for line, row in enumerate(rows, 2):
        result.append(line, row)
    return result


def test_decoding_notes_encoding_and_spelling():
    values, notes = codes(["1", "0", ""], ["1.0", "0", "1.0"], ["1.0", "", ""]).decode("binary")
    assert values.tolist() == [[1, -1, 0], [1, -1, 1], [1, 0, 0]]
    assert notes == {"encoding": "binary", "codes": {"present": "1.0", "absent": "0", "unknown": ""}}


@pytest.mark.parametrize(
    ("row", "spelled"),
    [
        (["Yes", "no", "no"], {"present": "Yes", "absent": "no", "unknown": "?"}),
        (["true", "", ""], {"present": "true", "absent": "false", "unknown": ""}),
        (["absent", "", "absent"], {"present": "present", "absent": "absent", "unknown": ""}),
        (["", "", ""], {"present": "present", "absent": "absent", "unknown": ""}),
    ],
)
def test_words_keep_the_users_family(row, spelled):
    assert codes(row).decode(None)[1] == {"encoding": "words", "codes": spelled}


def test_bad_cells_and_the_readings_are_reported_together():
    with pytest.raises(DataError) as error:
        codes(["1", "0", "x" * 100], ["0", "", "1"]).decode(None)
    text = str(error.value)
    assert "line 2, column 'z': value 'xxx" in text and "x" * 61 not in text
    assert '-o encoding=binary (Python: encoding="binary"): 2 present, 2 absent, 1 unknown' in text
    assert "encoding=signed" not in text


def test_gathered_undeclared_codes_are_all_unknown():
    with gather() as found:
        values, notes = codes(["1", "0", "-1"]).decode(None)
    assert values.tolist() == [[0, 0, 0]] and notes == {"undecoded": True}
    assert found.counts == {("error", "undeclared-encoding"): 1}
    assert (
        "encoding=signed" in found.shown[0].message and "encoding=minus_one_unknown" in found.shown[0].message
    )


def test_all_bad_cells_are_counted_with_the_first_shown():
    with gather(limit=20) as found:
        table = codes(*[["7", "1", "8"]] * 30)
        assert table.translate({"1": 1}, "1").tolist() == [[0, 1, 0]] * 30
        table.problems.raise_any()
    assert found.counts == {("error", "bad-value"): 60}
    places = [(finding.line, finding.column, finding.value) for finding in found.shown]
    assert places == [(2 + n // 2, "xz"[n % 2], "78"[n % 2]) for n in range(20)]


def test_no_row():
    assert codes().decode("signed")[0].shape == (0, 3)


def test_a_table_of_measurements_is_refused_early(monkeypatch):
    monkeypatch.setattr(sarb.data.parse.codes, "MOST_SPELLINGS", 4)
    with pytest.raises(
        DataError, match=r"a\.csv, line 3: more than 4 different values, such as '0.6'.*-o ignore="
    ):
        codes(["0.1", "0.2", "0.3"], ["0.4", "0.5", "0.6"])
