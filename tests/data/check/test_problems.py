import pytest

from sarb.data.check.problems import (
    DataWarning,
    Finding,
    Findings,
    Problems,
    all_at_once,
    fault,
    gather,
    warn_size,
)
from sarb.errors import DataError


def test_a_finding_says_its_place():
    finding = Finding("error", "bad-value", "value '7'", "a.csv", 3, "dog")
    assert str(finding) == "a.csv, line 3, column 'dog': value '7'"
    assert finding.within("a.csv") == "line 3, column 'dog': value '7'"
    assert str(Finding("error", "x", "broken", "a.json", 2, 17)) == "a.json, line 2, column 17: broken"
    assert str(Finding("note", "x", "alone")) == "alone"


def test_one_error_is_one_line_and_several_are_a_list():
    problems = Problems("a.csv")
    problems.raise_any()
    problems.add(line=2, column="x", value="7", expected="1 or 0")
    with pytest.raises(DataError) as error:
        problems.raise_any()
    assert str(error.value) == "a.csv, line 2, column 'x': value '7'; expected 1 or 0"
    assert error.value.findings == [
        Finding("error", "data", "value '7'; expected 1 or 0", "a.csv", 2, "x", "7", "1 or 0")
    ]
    problems.add("first", line=2)
    problems.add("second", file="b.csv", line=5)
    with pytest.raises(DataError) as error:
        problems.raise_any()
    assert str(error.value) == "a.csv: 2 problems\n  line 2: first\n  b.csv, line 5: second"
    problems.raise_any()  # what was raised is forgotten


def test_only_the_first_of_each_kind_are_kept_and_all_are_counted():
    problems = Problems("a.csv", limit=3)
    for number in range(7):
        problems.add(f"many {number}", kind="many")
    problems.add("rare", kind="rare", times=5)
    assert problems.count == 12
    with pytest.raises(DataError) as error:
        problems.raise_any()
    assert [finding.message for finding in error.value.findings] == ["many 0", "many 1", "many 2", "rare"]
    assert "12 problems" in str(error.value) and "… and 8 more" in str(error.value)


def test_warnings_warn_and_notes_are_silent(recwarn):
    problems = Problems("a.csv")
    problems.add("odd", level="warning", line=1)
    problems.add("fine", level="note")
    with pytest.warns(DataWarning, match="a.csv, line 1: odd"):
        problems.raise_any()
    problems.add("fine", level="note")
    problems.raise_any()
    assert not recwarn.list


def test_gathering_lets_the_reader_go_on():
    with gather(limit=2) as found:
        for number in range(3):
            problems = Problems("a.csv")
            problems.add(f"error {number}", kind="e")
            problems.add(f"note {number}", kind="n", level="note")
            problems.raise_any()
    assert [finding.message for finding in found.shown] == ["error 0", "note 0", "error 1", "note 1"]
    assert found.counts == {("error", "e"): 3, ("note", "n"): 3}
    assert (found.count("error"), found.count("warning")) == (3, 0)
    with pytest.raises(DataError):
        Problems_with_one_error().raise_any()


def Problems_with_one_error():  # noqa: N802
    problems = Problems("a.csv")
    problems.add("x")
    return problems


def test_merging_keeps_the_counts():
    first = Findings(limit=2)
    second = Findings(limit=5)
    for number in range(4):
        second.add(Finding("error", "k", str(number)), times=2)
    first.merge(second)
    assert first.counts["error", "k"] == 8
    assert [finding.message for finding in first.shown] == ["0", "1"]


def test_all_at_once_raises_everything_together():
    def read(fatal):
        for name in ("a.csv", "b.csv"):
            problems = Problems(name)
            problems.add(f"bad {name}")
            problems.raise_any()
        if fatal:
            raise fault("c.csv", "gone", line=4)
        return 7

    for fatal, count in ((False, 2), (True, 3)):
        with pytest.raises(DataError) as error:
            all_at_once(lambda fatal=fatal: read(fatal))
        assert str(error.value).startswith(f"a.csv: {count} problems\n  bad a.csv\n  b.csv: bad b.csv")
        assert len(error.value.findings) == count
    assert "c.csv, line 4: gone" in str(error.value)
    with gather() as found:
        assert all_at_once(lambda: read(False)) == 7
    assert found.count("error") == 2


def test_a_lone_fatal_error_is_raised_as_it_is():
    wanted = fault("c.csv", "gone", kind="k")

    def read():
        raise wanted

    with pytest.raises(DataError) as error:
        all_at_once(read)
    assert error.value is wanted and wanted.findings[0].kind == "k"


def test_official_sizes():
    with pytest.warns(DataWarning, match=r"list\.txt: VOC has 6 images, the official set has 5,011"):
        warn_size("VOC", 5011, 6, "list.txt")
    warn_size("VOC", 6, 6, "list.txt")


def test_long_text_is_cut_line_by_line():
    problems = Problems("a.csv")
    problems.add("x" * 5000 + "\n  -o option=1", value="v" * 5000, column="c" * 5000)
    with pytest.raises(DataError) as error:
        problems.raise_any()
    assert len(str(error.value)) < 1000 and str(error.value).endswith("…\n  -o option=1")
    assert len(error.value.findings[0].value) == 400
    assert len(str(fault("a.csv", "y" * 5000))) < 500


def test_a_note_is_kept_once_but_every_error_counts():
    found = Findings()
    for level in ("note", "note", "error", "error"):
        found.add(Finding(level, "bom", "starts with a byte order mark", "a.csv", 1))
    assert found.count("note") == 1 and found.count("error") == 2
