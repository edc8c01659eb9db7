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
    assert "-o encoding=binary: 2 present, 2 absent, 1 unknown" in text
    assert "encoding=signed" not in text


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1", "0", ""], "2 present, 2 absent, 2 unknown"),
        (["1.0", "", ""], "2 present, 0 absent, 4 unknown"),
        (["0", "", "0"], "0 present, 4 absent, 2 unknown"),
    ],
)
def test_numbers_that_only_one_encoding_has_are_read_and_it_is_said(cells, said):
    with gather() as found:
        table = codes(cells, cells)
        values, notes = table.decode(None)
        table.problems.raise_any()
    assert notes["encoding"] == "binary" and values.any()
    (note,) = found.shown
    assert (note.level, note.kind) == ("note", "read-as")
    assert note.message.startswith("read with encoding=binary, ") and note.message.endswith(said)


@pytest.mark.parametrize(
    "cells",
    [["1", "0", "0"], ["1", "-1", "1"], ["1", "0", "-1"], ["1", "-1", ""], ["-1", "", "0"], ["1", "1", "1"]],
)
def test_numbers_that_mean_several_things_or_nothing_are_not_read(cells):
    with pytest.raises(DataError, match="-o encoding="):
        codes(cells).decode(None)


def test_words_of_the_users_own():
    values, notes = codes(["Ja", "nein", ""], ["JA", "Nein", "Ja"], ["Ja", "Nein", "?"]).decode("ja/nein")
    assert values.tolist() == [[1, -1, 0], [1, -1, 1], [1, -1, 0]]
    assert notes["codes"] == {"present": "Ja", "absent": "Nein", "unknown": ""}
    with pytest.raises(
        DataError, match=r"value 'vielleicht'; expected 'ja', 'nein', blank or '\?' \(encoding ja/nein\)"
    ):
        table = codes(["Ja", "nein", "vielleicht"])
        table.decode("ja/nein")
        table.problems.raise_any()
    with pytest.raises(DataError) as error:
        codes(["Ja", "Nein", ""]).decode(None)
    assert "-o encoding=Ja/Nein" in str(error.value) and "-o encoding=Nein/Ja" in str(error.value)
    assert "value 'Ja'" not in str(error.value)  # the option is missing, the cells are not wrong


def test_three_words_of_the_users_own_beside_columns_that_are_no_categories():
    rows = [["7", "Ja", "nein"], ["8", "k.A.", "Ja"], ["9", "nein", "k.A."], ["10", "ja", "k.A."]]
    with gather() as found:
        codes(*rows).decode(None)
    assert found.counts == {("error", "no-category"): 1, ("error", "undeclared-encoding"): 1}
    said = "\n".join(each.message for each in found.shown)
    assert "the words 'Ja', 'nein', 'k.A.'" in said and "-o encoding=PRESENT/ABSENT/UNKNOWN" in said
    with gather() as found:
        table = codes(*rows)
        table.decode("Ja/Nein")
        table.problems.raise_any()
    assert found.counts == {("error", "no-category"): 1, ("error", "bad-value"): 1}
    last = found.shown[-1].message
    assert "'k.A.', here and in 2 other cells" in last and "-o encoding=Ja/Nein/k.A." in last


def test_a_column_that_is_no_category_is_reported_once():
    with gather() as found:
        table = codes(["1", "blurred", "0"], ["0", "dark", "7"], ["1", "", ""], ["1", "old, torn", ""])
        table.decode("binary")
        table.problems.raise_any()
    assert found.counts == {("error", "no-category"): 1, ("error", "bad-value"): 1}
    assert "3 cells of this column" in found.shown[0].message and "-o ignore=y" in found.shown[0].message


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
