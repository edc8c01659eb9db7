"""The rows of the paper's tables."""

import pytest

from sarb.registry import METHODS, NETWORKS
from sarb.rows import ROWS
from sarb.settings import option_types, resolve

ABLATION = {
    "SSGRL",
    "Ours",
    "Ours w/ SD",
    "Ours w/ SAM",
    "Ours ILRB",
    "Ours PLRB",
    "Ours ILRB fixed alpha",
    "Ours PLRB fixed beta",
}


def test_the_rows_of_the_paper_are_there_by_name():
    assert set(ROWS) >= ABLATION
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert ROWS[f"Ours ILRB fixed alpha={share}"].method_options["alpha"] == share
        assert ROWS[f"Ours PLRB fixed beta={share}"].method_options["beta"] == share


@pytest.mark.parametrize("name", ROWS)
def test_every_row_can_be_trained(name):
    row = ROWS[name]
    assert row.network in NETWORKS and row.method in METHODS
    assert set(row.network_options) <= set(option_types("network", row.network))
    assert set(row.method_options) <= set(option_types("method", row.method))
    settings = resolve(
        "small",
        network=row.network,
        method=row.method,
        network_options=row.network_options,
        method_options=row.method_options,
    )
    assert settings.network == row.network and settings.method == row.method
    assert settings.method_options.items() >= row.method_options.items()


@pytest.mark.parametrize("name", [name for name in ROWS if "fixed" in name])
def test_fixed_rows_learn_no_coefficient(name):
    assert ROWS[name].method_options["learnable"] is False


@pytest.mark.parametrize(("part", "other"), [("ILRB", "plrb"), ("PLRB", "ilrb")])
def test_rows_of_one_part_switch_the_other_off(part, other):
    rows = [row for name, row in ROWS.items() if part in name]
    assert len(rows) == 7
    assert all(
        row.method_options[part.lower()] is True and row.method_options[other] is False for row in rows
    )


def test_the_two_kinds_of_representation():
    assert ROWS["Ours w/ SD"].network_options == {"csrl": "sd"}
    assert ROWS["Ours w/ SAM"].network_options == {"csrl": "sam"}
    assert (ROWS["SSGRL"].network, ROWS["SSGRL"].method) == ("ssgrl", "partial_bce")
    assert (ROWS["partial-BCE"].network, ROWS["partial-BCE"].method) == ("pooled", "partial_bce")
    assert ROWS["partial-BCE"].method_options == {"form": "durand"}


def test_the_other_methods_of_the_tables():
    curriculum = ROWS["Curriculum labeling"]
    assert (curriculum.network, curriculum.method) == ("pooled", "curriculum")
    assert (
        curriculum.method_options["strategy"] == "uncertainty" and curriculum.network_options["dropout"] > 0
    )
    assert (ROWS["IP-Mixup"].network, ROWS["IP-Mixup"].method) == ("ssgrl", "ip_mixup")
    assert (ROWS["FM-Mixup"].network, ROWS["FM-Mixup"].method) == ("ssgrl", "fm_mixup")
