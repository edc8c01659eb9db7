"""Square root, PCA."""

import numpy as np
import pytest

from sarb.auto.features import fit_projection, signed_root


@pytest.mark.parametrize("shape", [(50, 12), (9, 30), (2, 5)])
def test_mean_square_norm_is_one_and_width_is_bounded(shape):
    pooled = np.random.RandomState(0).rand(*shape)
    projection = fit_projection(pooled, 8)
    features = projection(pooled)
    assert features.shape == (shape[0], min(8, shape[0] - 1, shape[1]))
    np.testing.assert_allclose((features**2).sum(1).mean(), 1)
    np.testing.assert_allclose(np.linalg.norm(projection.directions(features), axis=1), 1)


def test_features_are_uncorrelated_and_repeat():
    pooled = np.random.RandomState(1).rand(60, 10) @ np.random.RandomState(2).rand(10, 10)
    features = fit_projection(pooled, 6)(pooled)
    covariance = np.cov(features.T)
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=1e-9)
    np.testing.assert_array_equal(features, fit_projection(pooled, 6)(pooled))


def test_constant_channels_and_equal_images_give_no_nan():
    assert np.isfinite(fit_projection(np.ones((5, 4)))(np.ones((5, 4)))).all()
    assert np.isfinite(fit_projection(np.ones((1, 4)))(np.zeros((3, 4)))).all()


def test_signed_root_of_negative_values():
    np.testing.assert_allclose(signed_root(np.array([-4.0, 0.0, 9.0])), [-2, 0, 3])
