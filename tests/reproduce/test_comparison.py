"""The tables of hand-made results."""

import re

import pytest

from sarb.reproduce.ablation import ablation_tables, fixed_tables
from sarb.reproduce.comparison import comparison_tables, over
from sarb.reproduce.gains import gain_tables, room_closed, steadiness_table
from sarb.reproduce.names import TABLES
from sarb.reproduce.published import ALL_NINE
from tests.reproduce.hand import SMALL, results

ROWS = ["SSGRL", "KGGR", "Pooled", "Ours"]


def body(table):
    return table.to_markdown().split("|---", 1)[1].split("\n", 1)[1].split("\n\n")[0].splitlines()


def test_map_by_proportion(tmp_path):
    averages, table, other = comparison_tables(results(tmp_path, *SMALL), "hand", ROWS, None)
    assert body(table) == [
        "| hand | SSGRL | 45.0 | 59.0 | 52.0 |",
        "|  | KGGR | 48.0 | – | – |",
        "|  | Pooled | 40.0 | 58.0 | 49.0 |",
        "|  | Ours | **52.0 ± 2.8** | **61.0 ± 1.4** | **56.5 ± 2.1** |",
    ]
    assert body(averages)[0].startswith("| hand | SSGRL | 52.0 |")
    assert body(other)[4] == "| hand | CF1 | SSGRL | 25.0 | 39.0 | 32.0 |"
    assert "not all nine" in table.to_markdown()
    assert "not all nine" not in over(ALL_NINE)


def test_published_numbers_stand_in_a_group_of_their_own_with_the_same_kind_of_map(tmp_path):
    tables = {
        table.name: table for table in comparison_tables(results(tmp_path, *SMALL), "hand", ROWS, "coco2014")
    }
    assert set(tables) == {"averages", "mAP", "mAP_interpolated", "OF1-CF1"}
    assert "published" not in tables["mAP"].to_markdown()
    lines = body(tables["mAP_interpolated"])
    assert lines[0] == "| hand | SSGRL | 46.0 | 60.0 | 53.0 |"
    assert lines[4] == "| published, MS-COCO | SSGRL | 62.5 | 76.3 | 69.4 |"
    assert lines[-1] == "|  | Ours | **71.2** | **78.9** | **75.1** |"
    averages = body(tables["averages"])
    assert averages[4] == "| published, MS-COCO | SSGRL | – | 69.4 | – | – | 70.0 | – | – | 62.3 |"


def test_gain_and_room(tmp_path):
    gain, room, above = gain_tables(results(tmp_path, *SMALL), "hand", ROWS, "coco2014")
    assert body(gain) == [
        "| hand | Ours − SSGRL | 7.0 | 2.0 |",
        "|  | Ours − best baseline | 4.0 | 2.0 |",
        "| published, MS-COCO | Ours − SSGRL | 8.7 | 2.6 |",
        "|  | Ours − best baseline | 4.6 | 1.4 |",
    ]
    assert "+7.0 at 10 % and +2.0 at 50 %" in gain.to_markdown()
    assert body(room)[:3] == [
        "| hand | SSGRL | 25.0 | 50.0 |",
        "|  | KGGR | 40.0 | – |",
        "|  | Ours | **60.0** | **150.0** |",
    ]
    assert body(above)[2] == "|  | Ours | **50.0** |"


@pytest.mark.parametrize(
    ("paper", "gain", "note"), [("coco2014", "2.0", "interpolated"), (None, "0.0", "plain")]
)
def test_beside_published_numbers_ours_are_interpolated_too(tmp_path, paper, gain, note):
    made = results(tmp_path, ("SSGRL", 0.1, 0, 50.0), ("Ours", 0.1, 0, 49.99, {"mAP_interpolated": 53.0}))
    table = gain_tables(made, "hand", ["SSGRL", "Ours"], paper)[0]
    assert body(table)[0] == f"| hand | Ours − SSGRL | {gain} |", "and no minus before a zero"
    assert f"mAP is {note} mAP" in table.to_markdown()


def test_the_published_room_above_ssgrl_is_the_known_one(tmp_path):
    lines = [(row, known, 0, 50.0 + 10 * known) for row in ("SSGRL", "Ours") for known in (0.1, 0.9)]
    *_, above = gain_tables(results(tmp_path, *lines), "hand", ["SSGRL", "Ours"], "coco2014")
    assert body(above)[-1].startswith("|  | Ours | **54.7**")


def test_no_room_no_share():
    assert (
        room_closed(50.0, 49.5, 50.0) is room_closed(None, 1.0, 50.0) is room_closed(50.0, 60.0, 50.0) is None
    )
    assert room_closed(15.0, 10.0, 20.0).value == 50.0


def test_ablation_has_the_paper_s_order_and_compares_the_same_labels(tmp_path):
    lines = [(row, 0.1, 0, 40.0 + place) for place, row in enumerate(TABLES["ablation"])]
    made = results(tmp_path, *lines, ("Ours", 0.1, 1, 90.0), ("Ours", 0.5, 0, 90.0), ("SSGRL", 0.5, 0, 90.0))
    (table,) = ablation_tables(made, "hand", "coco2014")
    shown = [
        line.split(" | ")[0].strip("| ").replace("α", "alpha").replace("β", "beta") for line in body(table)
    ]
    assert shown == list(TABLES["ablation"])
    assert body(table)[-1] == "| Ours | 49.0 | 50.0 | 77.9 |", "seed 1 and 50 % are not those of all rows"
    assert table.to_latex().count(r"\midrule") == 3
    assert ablation_tables(results(tmp_path / "none", *SMALL), "hand", None) == []


def test_fixed(tmp_path):
    made = results(tmp_path, *[(row, 0.1, 0, 40.0 + place) for place, row in enumerate(TABLES["fixed"])])
    (table,) = fixed_tables(made, "hand", None)
    assert body(table) == [
        "| hand | Ours ILRB fixed α | 40.0 | 41.0 | 42.0 | 43.0 | 44.0 | 50.0 |",
        "|  | Ours PLRB fixed β | 45.0 | 46.0 | 47.0 | 48.0 | 49.0 | 51.0 |",
    ]
    (beside,) = fixed_tables(made, "hand", "voc2007")
    assert (
        body(beside)[2]
        == "| published, Pascal VOC 2007 | Ours ILRB fixed α | 88.9 | 89.3 | 89.8 | 89.5 | 89.2 | 90.2 |"
    )


def test_steadiness(tmp_path):
    with_, without = {"loss_mean": 2.0, "loss_change": 0.1}, {"loss_mean": 1.0, "loss_change": 0.2}
    made = results(
        tmp_path, ("Ours", 0.1, 0, 1.0, with_), ("Ours ILRB", 0.1, 0, 1.0, without), ("Ours", 0.5, 0, 1.0)
    )
    (table,) = steadiness_table(made, "hand")
    assert body(table) == [
        "| hand | Ours | 2.000 | 0.100 | 5.000 |",
        "|  | Ours ILRB | 1.000 | 0.200 | 20.000 |",
    ]
    assert steadiness_table(results(tmp_path / "none", *SMALL), "hand") == []


@pytest.mark.parametrize("paper", [None, "coco2014"])
def test_latex_has_balanced_braces_and_as_many_cells_as_columns(tmp_path, paper):
    extra = [(row, 0.1, 0, 40.0) for row in (*TABLES["ablation"], *TABLES["fixed"]) if row not in ROWS]
    made = results(tmp_path, *SMALL, *extra)
    tables = [*comparison_tables(made, "a_b", ROWS, paper), *gain_tables(made, "a_b", ROWS, paper)]
    tables += [*ablation_tables(made, "a_b", paper), *fixed_tables(made, "a_b", paper)]
    assert len(tables) == (9 if paper else 8)
    for table in tables:
        text = table.to_latex()
        plain = re.sub(r"\\[{}]", "", text)
        assert plain.count("{") == plain.count("}")
        columns = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1])
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert {len(re.split(r"(?<!\\)&", line)) for line in lines} == {columns} == {len(table.head)}
        assert text.isascii(), [sign for sign in text if not sign.isascii()]
