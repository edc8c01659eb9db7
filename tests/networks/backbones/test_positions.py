import pytest
import torch
from torch.nn import functional as F

from sarb.networks.backbones.positions import resampled


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("new", [(3, 5), (14, 14), (7, 7), (20, 9), (37, 37), (1, 1)])
def test_it_is_the_bicubic_interpolation_of_pytorch(new, antialias):
    positions = torch.randn(1, 2 + 14 * 14, 6, generator=torch.Generator().manual_seed(0))
    grid = positions[:, 2:].reshape(1, 14, 14, 6).permute(0, 3, 1, 2)
    expected = F.interpolate(grid, size=new, mode="bicubic", align_corners=False, antialias=antialias)
    found = resampled(positions, (14, 14), new, antialias)
    torch.testing.assert_close(
        found[:, 2:].reshape(1, *new, 6).permute(0, 3, 1, 2), expected, atol=2e-5, rtol=1e-4
    )
    assert torch.equal(found[:, :2], positions[:, :2])


def test_the_same_grid_changes_nothing():
    positions = torch.randn(1, 1 + 9, 4)
    assert resampled(positions, (3, 3), (3, 3)) is positions
