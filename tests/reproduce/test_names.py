"""Which cells a table needs."""

import pytest

from sarb.errors import ConfigError
from sarb.reproduce.cells import Cell
from sarb.reproduce.names import ORDER, TABLES, cells_of
from sarb.reproduce.published import ALL_NINE, TITLES, number
from sarb.rows import ROWS


def test_every_row_of_every_table_exists_and_no_row_lacks_a_place():
    assert {row for rows in TABLES.values() for row in rows} <= set(ROWS) == set(ORDER)


@pytest.mark.parametrize("table", ["comparison", "ablation", "fixed"])
def test_the_rows_are_those_the_paper_gives_numbers_for(table):
    assert [row for row in TABLES[table] for paper in TITLES if number(paper, row, None, "mAP") is None] == []


def test_comparison_is_rows_by_shares_by_seeds_and_the_pooled_baseline():
    cells = cells_of("comparison", None, ALL_NINE, (0, 1, 2), True)
    assert len(cells) == len(set(cells)) == 7 * 9 * 3 + 1
    assert [cell for cell in cells if cell.known == 1] == [Cell("Pooled", 1.0, 0)]
    assert len(cells_of("comparison", None, ALL_NINE, (0,), False)) == 6 * 9
    assert len(cells_of("ablation", None, (0.1,), (0,), True)) == 10
    assert len(cells_of("fixed", None, (0.1,), (0,), True)) == 12


def test_the_first_seed_and_the_smallest_share_come_first():
    cells = cells_of("comparison", ["SSGRL", "Ours"], (0.5, 0.1), (0, 1), False)
    expected = [(seed, known, row) for seed in (0, 1) for known in (0.1, 0.5) for row in ("SSGRL", "Ours")]
    assert [(cell.seed, cell.known, cell.row) for cell in cells] == expected


def test_figures_need_a_training_without_plrb():
    cells = cells_of("figures", ["SSGRL"], (0.5, 0.1), (3, 4), False)
    assert cells[-2:] == [Cell("Ours", 0.1, 3), Cell("Ours ILRB", 0.1, 3)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("comparisons", None, (0.1,), (0,)), "Did you mean 'comparison'"),
        (("comparison", ["SSGRl"], (0.1,), (0,)), "Did you mean 'SSGRL'"),
        (("comparison", None, (10.0,), (0,)), "did you mean 0.1"),
        (("comparison", None, (0.0,), (0,)), "nothing to learn from"),
        (("comparison", None, (0.1,), ()), "no seed"),
    ],
)
def test_what_is_wrong_is_said(given, message):
    with pytest.raises(ConfigError, match=message):
        cells_of(*given, True)
