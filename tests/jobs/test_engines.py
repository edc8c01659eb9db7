"""The names of engines, and what each one refuses."""

import pytest

import sarb.jobs.engines
from sarb.errors import ConfigError
from sarb.jobs.engines import ENGINES, PACKAGES, Engine


def test_all_mistakes_at_once():
    with pytest.raises(ConfigError) as caught:
        Engine("rya", address="auto", slurm=("partition=gpu",)).check()
    unknown, address, slurm = caught.value.problems
    assert "unknown engine 'rya'. Did you mean 'ray'?" in unknown
    assert "engine='ray'" in address and "engine='slurm'" in slurm


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setattr(sarb.jobs.engines, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=rf'pip install "sarb\[{name}\]"'):
        Engine(name).check()


def test_wrong_keys_of_slurm_are_found_before_anything_starts(monkeypatch):
    monkeypatch.setattr(sarb.jobs.engines, "find_spec", lambda _: True)
    with pytest.raises(ConfigError, match="Did you mean 'memory'"):
        Engine("slurm", slurm=("memroy=3",)).check()


def test_the_local_engine_needs_nothing():
    Engine().check()
    assert ENGINES.keys() - PACKAGES.keys() == {"local"}
