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
    said = found.shown[0].message
    assert "'y' holds text, not labels (3 cells, the first is 'blurred')" in said and said.endswith(
        "-o ignore=y"
    )


def said_of(rows, encoding=None, **options):
    with gather() as found:
        table = codes(*rows, **options)
        table.decode(encoding)
        table.problems.raise_any()
    return {finding.kind: finding.message for finding in found.shown}, found


@pytest.mark.parametrize(
    "remarks", [["dark", "blurred", "dark", ""], ["to check", "", "to check", "to check"]]
)
def test_a_comment_column_does_not_hide_the_encoding_of_the_others(remarks):
    rows = [["Ja", "Nein", text] for text in remarks] + [["Nein", "Ja", ""]] * 9
    said, found = said_of(rows)
    assert found.counts == {("error", "no-category"): 1, ("error", "undeclared-encoding"): 1}
    assert said["no-category"].startswith("'z' holds text, not labels (3 cells, ")
    assert "-o encoding=Ja/Nein" in said["undeclared-encoding"]
    assert "0 present, 0 absent" not in said["undeclared-encoding"]


def test_a_question_mark_or_an_unknown_in_a_remark_does_not_make_the_words_english():
    rows = [["Ja", "Nein", "?"], ["Nein", "", "who is this"], ["Nein", "Ja", "dark"], ["Ja", "?", "old"]]
    said, _ = said_of(rows)
    assert "-o ignore=z" in said["no-category"] and "-o encoding=Ja/Nein" in said["undeclared-encoding"]


def test_a_word_of_two_languages_needs_the_other_word_too():
    said, found = said_of([["Sí", "no", "no"], ["", "Sí", "no"]])
    assert found.counts == {("error", "undeclared-encoding"): 1}
    assert "-o encoding='Sí/no'" in said["undeclared-encoding"]


def test_a_word_of_one_column_only_is_shown_with_its_column():
    said, _ = said_of([["Oui", "non", "à revoir"], ["non", "Oui", ""]])
    assert "'à revoir' (only in column 'z')" in said["undeclared-encoding"]
    assert "'Oui'," in said["undeclared-encoding"] and "-o ignore=z" in said["undeclared-encoding"]


def test_the_columns_of_text_are_left_out_with_one_option():
    rows = [["1", "0", "", f"{n} x", f"{n} y"] for n in range(4)]
    with gather() as found:
        table = Codes(Problems("a.csv"), list("abcde"), ["id"])
        for line, row in enumerate(rows, 2):
            table.append(line, row)
        assert table.decode(None)[1]["encoding"] == "binary"
        table.problems.raise_any()
    told = [finding.message for finding in found.shown if finding.kind == "no-category"]
    assert len(told) == 2 and all(message.endswith("-o ignore=id,d,e") for message in told)


def test_no_reading_without_a_label_is_offered():
    said, _ = said_of([["x1", "x2", "x3"], ["", "", "x4"]])
    assert "0 present" not in said["undeclared-encoding"]
    assert "PRESENT/ABSENT" in said["undeclared-encoding"]


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
