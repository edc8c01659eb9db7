"""The published numbers of the field."""

import csv
import statistics
from pathlib import Path

import sarb.reproduce
from sarb.rows import FIELD, ROWS

FILE = Path(sarb.reproduce.__file__).parent / "field.csv"


def lines():
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_number_has_a_row_a_source_and_what_differs():
    assert lines()
    for line in lines():
        assert line["row"] in ROWS and line["setting"] in ("partial", "single-positive")
        assert 0 < float(line["value"]) < 100
        assert line["source"] and line["differs"]
    keys = [(line["dataset"], line["setting"], line["row"], line["known_percent"]) for line in lines()]
    assert len(set(keys)) == len(keys)


def test_the_means_of_the_single_shares_agree_with_the_published_averages():
    for row in ("SST", "HST"):
        mine = [line for line in lines() if (line["dataset"], line["row"]) == ("coco2014", row)]
        shares = [float(line["value"]) for line in mine if line["known_percent"].isdigit()]
        (average,) = [float(line["value"]) for line in mine if line["known_percent"] == "average"]
        assert len(shares) == 9 and abs(statistics.fmean(shares) - average) < 0.06


def test_faulty_sources_are_named():
    told = {line["row"]: line["differs"] for line in lines()}
    assert "contrast inverted" in told["HST"] and "runs LL-Cp as LL-Ct" in told["LL-Cp"]


def test_the_field_stays_out_of_the_papers_grids():
    from sarb.reproduce.names import TABLES

    assert not set(FIELD) & {row for rows in TABLES.values() for row in rows}
    assert not [name for name in FIELD if list(ROWS).index(name) < list(ROWS).index("Ours")]
