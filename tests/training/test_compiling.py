"""``torch.compile``: which parts, and that nothing is left of it afterwards."""

import pytest
import torch

from sarb.errors import ConfigError
from sarb.model import build_network
from sarb.training.compiling import Compiled, trained_parts


@pytest.fixture
def network():
    return build_network(3, network="pooled", backbone="tiny", backbone_options={"train_stages": 1})


def test_the_trained_stages_and_the_own_layers(network):
    last = network.backbone.stage(network.backbone.stage_names[-1])
    parts = trained_parts(network)
    assert network.classifier in parts and all(part in parts for part in last)
    first = network.backbone.stage(network.backbone.stage_names[0])
    assert not any(part in parts for part in first)


def test_compiled_in_place_and_back(network, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda call, **options: compiled.append(call) or call)
    names = network.state_dict().keys()
    found = Compiled(network, "cpu")
    assert len(compiled) == len(trained_parts(network)) > 1
    assert network.classifier._compiled_call_impl is not None and network.state_dict().keys() == names
    found.restore()
    assert all(part._compiled_call_impl is None for part in network.modules())


def test_without_a_compiler(network, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs a C\+\+ compiler"):
        Compiled(network, "cpu")
