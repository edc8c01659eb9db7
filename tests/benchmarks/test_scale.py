"""Curves over N and C: the fit, the files, and that every part can be built and run."""

import argparse

import pytest
from benchmarks.harness import LEAST_MEMORY
from benchmarks.scale import Point

from benchmarks import scale, scale_parts
from tests.waiting import PATIENCE

MB = 10**6


def power(part="SD", exponent=2.0, sizes=(20, 80, 200, 1000, 3000, 10000)):
    return [Point(part, size, 1e-6 * size**exponent, int(10 * MB * size**1.5), 0) for size in sizes]


def test_the_exponent_of_a_power():
    assert scale.exponent(power(), "seconds") == pytest.approx(2)
    assert scale.exponent(power(), "memory") == pytest.approx(1.5, abs=1e-6)


def test_only_the_upper_part_of_a_curve_counts():
    points = [
        *(Point("SD", size, 1.0, LEAST_MEMORY) for size in (20, 80)),
        *power(sizes=(200, 1000, 3000, 10000)),
    ]
    assert scale.exponent(points, "seconds") == pytest.approx(2)
    assert scale.exponent(points, "memory") == pytest.approx(1.5, abs=1e-6)


def test_no_exponent_from_too_few_or_too_small_values():
    assert scale.exponent(power(sizes=(80,)), "seconds") is None
    assert scale.exponent([Point("SD", size, 1.0, LEAST_MEMORY) for size in (20, 80)], "memory") is None
    assert scale.exponent([Point("SD", 20, failed="over 1 s"), *power(sizes=(80,))], "seconds") is None


def test_points_are_read_as_they_were_written(tmp_path):
    points = [*power(), Point("hide", 1000, failed='killed, "out of memory"'), Point("hide", 10, 0.5)]
    scale.save(tmp_path / "scale.csv", points)
    assert scale.load(tmp_path / "scale.csv") == points
    assert scale.load(tmp_path / "none.csv") == []


def test_the_section_has_both_tables_and_the_figure():
    text = scale.section(
        [*power(), Point("hide", 1000, 0.5, 3 * MB), Point("hide", 10000, failed="over 9 s")], "x.png"
    )
    assert "](x.png)" in text and text.startswith(scale.BEGIN) and text.endswith(scale.END)
    assert "| hide | 500 ms, 3 MB | over 9 s | – | – |" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| SD")]
    assert row.endswith("| size^2.00 | size^1.50 |") and "| 100.00 s, 10,000,000 MB |" in row
    tables = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert tables == [6] * 3 + [10] * 3


def test_the_section_is_put_between_its_marks_and_the_rest_stays():
    first = scale.insert("# Page\n\nwords\n", scale.section(power(), "x.png"))
    assert first.startswith("# Page\n\nwords\n\n" + scale.BEGIN)
    changed = scale.insert(first + "\nbelow\n", scale.section(power("SAM"), "x.png"))
    assert "| SAM" in changed and "| SD" not in changed
    assert changed.startswith("# Page\n\nwords\n") and changed.endswith("below\n")
    assert changed.count(scale.BEGIN) == changed.count(scale.END) == 1


def test_sizes_go_up_until_one_fails_and_quick_stops_early(tmp_path, monkeypatch):
    calls = []

    def alone(part, size, limit):
        calls.append((part, size))
        return Point(part, size, failed="over 1 s" if (part, size) == ("SD", 200) else "")

    monkeypatch.setattr(scale, "alone", alone)
    options = argparse.Namespace(quick=True, limit=1, out=tmp_path / "scale.csv")
    points = scale.run(["SD", "hide"], power("SAM"), options)
    assert calls == [("SD", 20), ("SD", 80), ("SD", 200), ("hide", 1000), ("hide", 10_000), ("hide", 100_000)]
    assert scale.load(options.out) == points and len(points) == 6 + 6


def test_one_part_anew_keeps_the_other_rows_and_redraw_measures_nothing(tmp_path, monkeypatch, capsys):
    files = ["--out", tmp_path / "s.csv", "--figure", tmp_path / "s.png", "--markdown", tmp_path / "s.md"]
    files = list(map(str, files))
    scale.save(tmp_path / "s.csv", [*power("SD"), *power("hide", 1.0, (1000, 10_000))])
    monkeypatch.setattr(scale, "alone", lambda part, size, limit: Point(part, size, 2.0, 5 * MB, 6 * MB))
    assert scale.main([*files, "--quick", "--only", "hid"]) == 0
    points = scale.load(tmp_path / "s.csv")
    assert [point for point in points if point.part == "SD"] == power("SD")
    assert [point.seconds for point in points if point.part == "hide"] == [2.0, 2.0, 2.0]
    before = (tmp_path / "s.csv").read_text()
    monkeypatch.setattr(scale, "alone", None)
    assert scale.main([*files, "--redraw"]) == 0
    assert (tmp_path / "s.csv").read_text() == before
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG") and "| hide" in (
        tmp_path / "s.md"
    ).read_text()
    with pytest.raises(SystemExit):
        scale.main([*files, "--only", "nothing"])
    assert "there are hide" in capsys.readouterr().err


def test_a_point_in_a_process_of_its_own_and_its_limit():
    point = scale.alone("hide", 1000, PATIENCE)
    assert not point.failed and point.seconds > 0
    assert point.memory is None or LEAST_MEMORY <= point.memory < point.process
    assert scale.alone("hide", 1000, 0).failed == "over 0 s"
    assert "no such part" in scale.alone("no such part", 1000, PATIENCE).failed


@pytest.mark.parametrize("name", scale_parts.PARTS)
def test_every_part_runs_twice_at_its_smallest_size(name):
    part = scale_parts.PARTS[name]
    assert part.grows in scale.QUICK and list(part.sizes) == sorted(part.sizes)
    work = part.build(part.sizes[0])
    work()
    work()
