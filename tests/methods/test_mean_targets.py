"""Where a network with a start from the data begins: at the mean of the targets that the method learns from."""

import numpy as np
import pytest
import torch

import sarb
from sarb.labels import LabelMatrix
from sarb.registry import METHODS, find
from tests.methods.toy import Fixed

N, C = 200, 3
FIRST = 40  # known positives of the first category


def table(negatives):
    values = np.zeros((N, C), np.int8)
    values[:FIRST, 0] = 1
    values[FIRST : 2 * FIRST, 0] = -negatives
    values[:10, 1] = 1
    return LabelMatrix(values, ["a", "b", "c"])


def rates(name, labels, **options):
    method = find("method", METHODS, name)(Fixed(torch.zeros(2, C)), **options)
    method.prepare(labels)
    return method.mean_targets(labels)


PRESENT = np.array([FIRST + 1, 11, 1])


@pytest.mark.parametrize("name", ["an", "ll_r", "ll_ct", "ll_cp", "hill", "splc"])
@pytest.mark.parametrize("negatives", [0, 1])
def test_unknown_labels_that_count_as_absent_do_so_at_the_start(name, negatives):
    np.testing.assert_allclose(rates(name, table(negatives)), PRESENT / (N + 20))


def test_smoothed_targets_begin_at_their_mean():
    np.testing.assert_allclose(rates("an_ls", table(1), smoothing=0.1), 0.1 + 0.8 * PRESENT / (N + 20))


def test_wan_begins_where_its_weights_balance():
    light = (N - (PRESENT - 1)) / (C - 1)
    np.testing.assert_allclose(rates("wan", table(1)), PRESENT / (PRESENT - 1 + light + 20))


def test_the_expected_number_is_shared_out_if_nothing_is_known_to_be_absent():
    assert rates("epr", table(1)) is None
    found = rates("epr", table(0), positives=1.2)
    np.testing.assert_allclose(found, np.minimum(1.2 * PRESENT / PRESENT.sum(), 0.9))
    assert rates("epr", table(1), positives=1.2, negatives=False) is not None


@pytest.mark.parametrize("negatives", [0, 1])
def test_role_begins_at_its_learned_labels_which_count_known_ones_twice(negatives):
    found = rates("role", table(negatives), positives=1.2)
    unknown = N - FIRST * (1 + negatives)
    assert found[0] == pytest.approx((2 * FIRST + unknown / 2 + 1) / (2 * N - unknown + 20))
    assert found[2] == pytest.approx((N / 2 + 1) / (N + 20))


def test_csl_ignores_unknown_labels_in_the_first_of_two_rounds():
    assert rates("csl", table(1)) is None
    np.testing.assert_allclose(rates("csl", table(0)), PRESENT / (N + 20))


@pytest.mark.parametrize("name", ["partial_bce", "iu", "sarb", "curriculum", "sst", "hst", "dsrb"])
def test_the_others_begin_at_the_known_labels(name):
    method = find("method", METHODS, name)
    assert method.mean_targets is find("method", METHODS, "partial_bce").mean_targets


@pytest.mark.parametrize("network", ["pooled", "ssgrl", "gcn_ml", "kggr"])
def test_an_informed_start_uses_them_and_a_random_one_does_not(squares_data, network):
    """Without a step of training, the bias is the start."""
    train = squares_data.train.hide(0.5, 0)

    def bias(initial, method):
        options = {"initial": initial, **({"bias": True} if network == "gcn_ml" else {})}
        if network in ("ssgrl", "kggr"):
            options["csrl"] = "sam"
        model = sarb.fit(
            train,
            epochs=1,
            lr=1e-12,
            network=network,
            method=method,
            network_options=options,
            backbone="tiny",
            image_size=64,
            progress=False,
        )
        inner = model.network.classifier
        return (inner.category if network in ("ssgrl", "kggr") else inner).bias.detach().sigmoid().numpy()

    labels = train.labels
    every, known = len(labels), labels.known.sum(0)
    present = labels.positives
    np.testing.assert_allclose(bias("informed", "an"), (present + 1) / (every + 20), rtol=1e-4)
    np.testing.assert_allclose(bias("informed", "partial_bce"), (present + 1) / (known + 20), rtol=1e-4)
    np.testing.assert_array_equal(bias("random", "an"), bias("random", "partial_bce"))
