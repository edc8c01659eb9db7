"""What a method keeps in plain attributes comes back as it was."""

import json
import random
from collections import deque

import numpy as np
import pytest
import torch
from torch import nn

from sarb.training.attributes import Attributes, NotStorableError


class Part(nn.Module):
    """A module with all kinds of attributes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.parts = [self.linear]
        self.function = len
        self.count = 0
        self.seen = {"a": 1}
        self.memory = torch.zeros(3)
        self.chance = random.Random(0)
        self.torch_chance = torch.Generator().manual_seed(0)
        self.numpy_chance = np.random.default_rng(0)
        self.register_buffer("aside", torch.zeros(2), persistent=False)


def change(part):
    part.count = 3
    part.seen["b"] = (1.5, None, {2, 3}, [True])
    part.memory[1] = 7
    part.aside.fill_(2)
    part.losses = np.arange(3.0)
    part.linear.note = "inside"
    for draw in (part.chance.random, part.numpy_chance.random):
        draw()
    torch.rand(1, generator=part.torch_chance)


def test_what_has_changed_comes_back():
    one, other = Part(), Part()
    stored, fresh = Attributes(one), Attributes(other)
    change(one)
    values, tensors = stored.changed()
    fresh.restore(json.loads(json.dumps(values)), tensors)
    assert other.count == 3 and other.seen == one.seen and other.linear.note == "inside"
    assert torch.equal(other.memory, one.memory) and torch.equal(other.aside, one.aside)
    np.testing.assert_array_equal(other.losses, one.losses)
    assert other.chance.random() == one.chance.random()
    assert other.numpy_chance.random() == one.numpy_chance.random()
    assert torch.rand(1, generator=other.torch_chance) == torch.rand(1, generator=one.torch_chance)
    assert other.parts == [other.linear]


def test_what_has_not_changed_is_not_stored():
    values, _ = Attributes(Part()).changed()
    assert not {"count", "seen", "memory", "parts", "function", "aside"} & set(values)


def test_a_shared_generator_stays_shared():
    one, other = Part(), Part()
    stored, fresh = Attributes(one), Attributes(other)
    torch.rand(1, generator=one.torch_chance)
    outside = other.torch_chance
    fresh.restore(*stored.changed())
    assert torch.rand(1, generator=outside) == torch.rand(1, generator=one.torch_chance)


def test_generators_are_always_stored():
    """The state of a generator is a new tensor each time, which may have the place of an older one."""
    part = Part()
    stored = Attributes(part)
    for _ in range(200):
        torch.rand(1, generator=part.torch_chance)
        assert "torch_chance" in stored.changed()[0]


def test_what_cannot_be_stored_is_named():
    part = Part()
    stored = Attributes(part)
    part.linear.recent = deque([1])
    with pytest.raises(NotStorableError, match=r"^linear\.recent$"):
        stored.changed()
