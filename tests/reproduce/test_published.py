"""The numbers of the paper."""

from types import SimpleNamespace

import pytest

from sarb.reproduce.names import COMPARISON
from sarb.reproduce.published import ALL_NINE, TITLES, average, number, recognise


def test_single_numbers_as_printed():
    assert number("coco2014", "Ours", 0.1, "mAP") == 71.2
    assert number("vg200", "GCN-ML", 0.7, "CF1") == 30.4
    assert number("voc2007", "KGGR", None, "OP") == 90.5
    assert number("coco2014", "Ours PLRB fixed beta=0.7", None, "mAP") == 76.7
    assert number("coco2014", "Ours", 0.1, "mAP_interpolated") == 71.2, "the paper's mAP is interpolated"
    assert number("coco2014", "Pooled", 0.1, "mAP") is None


@pytest.mark.parametrize("paper", TITLES)
@pytest.mark.parametrize("metric", ["mAP", "OF1", "CF1"])
def test_printed_averages_are_those_of_the_printed_numbers(paper, metric):
    for row in COMPARISON:
        mean = sum(number(paper, row, known, metric) for known in ALL_NINE) / 9
        assert average(paper, row, ALL_NINE, metric) == pytest.approx(mean, abs=0.15)


def test_an_average_over_fewer_proportions():
    assert average("coco2014", "SSGRL", [0.1, 0.9], "mAP") == pytest.approx((62.5 + 78.4) / 2)
    assert average("coco2014", "SSGRL", [0.1, 0.9], "OP") is None


def test_data_sets_are_recognised_by_name():
    def made(name, count):
        return SimpleNamespace(name=name, categories=("x",) * count)

    assert recognise(made("coco", 80)) == "coco2014"
    assert recognise(made("voc2007", 20)) == "voc2007"
    assert recognise(made("vg200", 200)) == "vg200"
    assert recognise(made("coco", 3)) is recognise(made("demo", 30)) is None
