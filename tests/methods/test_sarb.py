"""SARB's options: which loss terms a row of the paper has, under every built-in recipe."""

import pytest

from sarb.methods.sarb import SARB
from sarb.networks.backbones.base import create_backbone
from sarb.networks.ssgrl import SSGRL
from sarb.rows import ROWS
from sarb.settings import recipe_names, resolve
from sarb.workflows.training import merge_options

OURS = [name for name, row in ROWS.items() if row.method == "sarb"]


def method_of(recipe, row, *assignments):
    options, _, problems = merge_options(row, assignments, {})
    assert not problems
    network = SSGRL(create_backbone("tiny"), 3, dim=8, hidden=4, word_dim=5)
    return SARB(network, **resolve(recipe, **options).method_options)


@pytest.mark.parametrize("recipe", recipe_names())
@pytest.mark.parametrize("row", OURS)
def test_the_contrastive_loss_belongs_to_plrb(recipe, row):
    """The recipes' λ used to reach rows without PLRB, such as 'Ours ILRB'."""
    assert (method_of(recipe, row).contrastive > 0) is ROWS[row].method_options.get("plrb", True)


def test_it_can_be_asked_for_without_plrb():
    assert method_of("small", "Ours ILRB", "method.contrastive=0.02").contrastive == 0.02
    assert method_of("small", "Ours", "method.contrastive=0").contrastive == 0
    assert method_of("small", "Ours").contrastive == 0.005
    assert method_of("coco2014", "Ours").contrastive == 0.05
