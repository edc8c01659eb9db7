"""Files of the hub: from the cache, fetched once, or one line that says how."""

import pytest

from sarb.errors import ConfigError
from sarb.networks.backbones.hf_files import ModelFiles
from sarb.networks.backbones.hub_files import hub_file, weight_names


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the hub with one repository, and no network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--owner--model"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    (snapshot / "config.json").write_text('{"model_type": "vit"}')
    return snapshot


def test_a_cached_file_needs_no_network(cache):
    assert hub_file("owner/model", ["other.json", "config.json"]) == cache / "config.json"
    assert ModelFiles("owner/model").config() == {"model_type": "vit"}
    assert ModelFiles(f"owner/model@{'a' * 40}").config() == {"model_type": "vit"}


def test_a_file_that_is_not_here_is_one_line_with_the_command(cache):
    with pytest.raises(ConfigError) as caught:
        hub_file("owner/model", weight_names(), instead="do without")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(
        "owner/model: model.safetensors is not on this machine and cannot be fetched (no answer from the hub, or "
        "HF_HUB_OFFLINE is set). Run once where there is internet: "
    )
    assert "hf download owner/model (" in text and text.endswith("; or do without")
    with pytest.raises(ConfigError, match="hf download owner/model --revision v2 "):
        ModelFiles("owner/model@v2").config()


def test_a_file_that_the_hub_does_not_have_is_none(cache, monkeypatch):
    import huggingface_hub

    def nothing(*args, **options):
        raise huggingface_hub.errors.EntryNotFoundError("404")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", nothing)
    assert hub_file("owner/model", ["a.bin", "b.bin"]) is None


def test_what_the_hub_once_did_not_have_needs_no_network(cache):
    with pytest.raises(ConfigError, match=r"preprocessor_config.json is not on this machine"):
        ModelFiles("owner/model").processor()
    absent = cache.parents[1] / ".no_exist" / cache.name  # where the library remembers it
    absent.mkdir(parents=True)
    (absent / "preprocessor_config.json").touch()
    (absent / "processor_config.json").touch()
    assert ModelFiles("owner/model").processor() == {}


def test_how_images_are_prepared_is_read_from_the_older_and_the_newer_file(tmp_path):
    files = ModelFiles(str(tmp_path))
    (tmp_path / "processor_config.json").write_text('{"image_processor": {"image_std": [1, 2, 3]}}')
    assert files.processor() == {"image_std": [1, 2, 3]}
    (tmp_path / "preprocessor_config.json").write_text('{"image_std": [4, 5, 6]}')
    assert files.processor() == {"image_std": [4, 5, 6]}


def test_a_folder(tmp_path):
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"config.json: no 'model_type'"):
        ModelFiles(str(tmp_path)).config()
    with pytest.raises(ConfigError, match="there is no weight file"):
        ModelFiles(str(tmp_path)).weights()
    assert ModelFiles(str(tmp_path)).processor() == {}
    with pytest.raises(ConfigError, match="no such folder, and not the name of a repository"):
        ModelFiles(str(tmp_path / "x")).config()


def test_the_parts_of_a_large_model_are_joined(tmp_path):
    import torch
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, tmp_path / "1.safetensors")
    save_file({"b": torch.ones(2)}, tmp_path / "2.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}'
    )
    assert set(ModelFiles(str(tmp_path)).weights()) == {"a", "b"}
    (tmp_path / "2.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"lists 2\.safetensors, which is missing"):
        ModelFiles(str(tmp_path)).weights()
