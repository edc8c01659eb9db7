import json

import pytest

from sarb.errors import ConfigError
from sarb.networks import text
from sarb.networks.text import sentence, text_source


def test_sentences():
    assert sentence("traffic_light") == "a photo of a traffic light."
    assert sentence("Dog") == "a photo of a dog."


def test_a_backbone_with_a_text_encoder_and_its_own_weights_is_a_source(tmp_path):
    name = f"hf:{tmp_path}"
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "clip", "text_config": {}, "vision_config": {}}))
    assert text_source(name, {}) == name
    assert text_source(name, {"weights": None}) is None
    assert text_source(name, {"weights": "other.pth"}) is None
    assert text_source("tiny", {}) is None
    file.write_text(json.dumps({"model_type": "clip_vision_model"}))
    assert text_source(name, {}) is None


def test_a_model_without_a_text_encoder_or_a_tokenizer_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "package", lambda *_: None)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "vit"}))
    with pytest.raises(ConfigError, match="a vit model has no text encoder"):
        text.text_vectors(f"hf:{tmp_path}", ["dog"])
    file.write_text(json.dumps({"model_type": "clip", "text_config": {}}))
    with pytest.raises(ConfigError, match=r"no tokenizer \(tokenizer\.json"):
        text.text_vectors(f"hf:{tmp_path}", ["dog"])


def test_a_tokenizer_that_was_not_fetched_is_one_line_with_the_command(tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(text, "package", lambda *_: None)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "clip", "text_config": {}}))
    monkeypatch.setattr(text.ModelFiles, "find", lambda self, names: tmp_path / names[0])
    with pytest.raises(ConfigError, match=r"no tokenizer .*hf download owner/model --revision v2$"):
        text.text_vectors("hf:owner/model@v2", ["dog"])
