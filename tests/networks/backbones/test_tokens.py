import torch
from torch import nn

from sarb.networks.backbones.tokens import Block, ChannelsLast, Embedding, Patches, as_map, as_tokens


def test_tokens_and_map_are_the_same_numbers():
    tokens = torch.arange(2 * (3 + 2 * 5) * 4.0).reshape(2, 13, 4)
    maps = as_map(tokens, 3, 2, 5)
    assert maps.shape == (2, 4, 3 + 2, 5)
    assert torch.equal(as_tokens(maps, 3), tokens)
    assert torch.equal(maps[1, :, 3 + 1, 2], tokens[1, 3 + 1 * 5 + 2])
    assert torch.equal(maps[0, :, 1], tokens[0, 1][:, None].expand(-1, 5))


def test_a_mirrored_map_has_mirrored_patches_and_the_same_other_tokens():
    tokens = torch.randn(1, 2 + 9, 4)
    mirrored = as_tokens(as_map(tokens, 2, 3, 3).flip(-1), 2)
    assert torch.equal(mirrored[:, :2], tokens[:, :2])
    assert torch.equal(mirrored[:, 2:].reshape(1, 3, 3, 4), tokens[:, 2:].reshape(1, 3, 3, 4).flip(2))


class Sum(nn.Module):
    """Every token becomes the sum of all, so that a token that gets lost is seen."""

    def forward(self, tokens, factor=1):
        return (factor * tokens.sum(1, keepdim=True).expand_as(tokens),)  # some blocks return tuples


def test_a_block_sees_all_tokens_and_its_further_arguments():
    tokens = torch.randn(2, 1 + 6, 4)
    maps = as_map(tokens, 1, 2, 3)
    expected = tokens.sum(1, keepdim=True).expand_as(tokens)
    torch.testing.assert_close(as_tokens(Block(Sum(), 1)(maps), 1), expected)
    seen = []

    def more(source, given, height, width):
        seen.append((source, given.shape, height, width))
        return {"factor": 2}

    torch.testing.assert_close(as_tokens(Block(Sum(), 1, more)(maps), 1), 2 * expected)
    assert seen == [(None, tokens.shape, 2, 3)]


def test_embedding_and_patches():
    weight = nn.Conv2d(3, 4, 8, 8)

    def run(parts, images):
        patches = parts[0](images).flatten(2).transpose(1, 2)
        return torch.cat([torch.zeros(len(images), 2, 4), patches], 1)

    images = torch.randn(2, 3, 16, 24)
    maps = Embedding([weight], run, 2, 8)(images)
    assert maps.shape == (2, 4, 2 + 2, 3)
    torch.testing.assert_close(Patches(2)(maps), weight(images))


def test_channels_last():
    norm = nn.LayerNorm(4)
    maps = torch.randn(2, 4, 3, 5)
    torch.testing.assert_close(ChannelsLast(norm)(maps)[1, :, 2, 4], norm(maps[1, :, 2, 4]))
    assert ChannelsLast(nn.Identity(), images=True)(maps).shape == (2, 5, 4, 3)  # taken as it is
