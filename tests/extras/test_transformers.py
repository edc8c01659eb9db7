"""The families of transformers, small and with random weights, pass the contract of a backbone."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch

import sarb
from sarb.errors import ConfigError
from sarb.networks.backbones.base import create_backbone
from sarb.networks.text import text_vectors
from sarb.settings import resolve
from sarb.wordnet.table import wordnet
from tests.extras.backbone_contract import BackboneContract

T = pytest.importorskip("transformers")

STAGED = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
BLOCKS = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48}
DINO = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 70,
    "patch_size": 14,
}
WINDOWS = {"embed_dim": 12, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "image_size": 64}
#: family -> configuration, image size
FAMILIES = {
    "resnet": (T.ResNetConfig(embedding_size=8, layer_type="basic", **STAGED), 64),
    "convnext": (T.ConvNextConfig(**STAGED), 64),
    "swin": (T.SwinConfig(**WINDOWS), 64),
    "swinv2": (T.Swinv2Config(**WINDOWS), 64),
    "vit": (T.ViTConfig(**BLOCKS, image_size=48), 64),
    "dinov2": (T.Dinov2WithRegistersConfig(**DINO), 70),
    "dinov3": (T.DINOv3ViTConfig(**BLOCKS, image_size=64, num_register_tokens=4), 64),
    "clip": (T.CLIPVisionConfig(**BLOCKS, image_size=48, patch_size=16), 64),
    "siglip": (T.SiglipVisionConfig(**BLOCKS, image_size=48, patch_size=16), 64),
}
#: the rest of the supported types, of the same kind as one above
MORE = {
    "convnextv2": (T.ConvNextV2Config(**STAGED), 64),
    "dinov2": (T.Dinov2Config(**DINO), 70),
    "dinov3_convnext": (T.DINOv3ConvNextConfig(**STAGED), 64),
}


@pytest.fixture(params=FAMILIES)
def backbone(request, tmp_path):
    config, size = FAMILIES[request.param]
    config.save_pretrained(tmp_path / "model")
    return f"hf:{tmp_path / 'model'}", {}, size


@pytest.fixture
def moved_files(tmp_path):
    return lambda: shutil.rmtree(tmp_path / "model")


class TestTransformers(BackboneContract):
    pass


@pytest.mark.parametrize("family", [*FAMILIES, *(f"more {name}" for name in MORE)])
def test_the_map_is_what_the_model_gives(family, tmp_path):
    config, size = MORE[family.removeprefix("more ")] if family.startswith("more ") else FAMILIES[family]
    torch.manual_seed(0)
    model = T.AutoModel.from_config(config).eval()
    model.save_pretrained(tmp_path)
    body = create_backbone(f"hf:{tmp_path}").eval()
    images = torch.randn(2, 3, size, size)
    interpolates = config.model_type in ("vit", "clip_vision_model", "siglip_vision_model")
    with torch.no_grad():
        found = body(images)
        more = {"interpolate_pos_encoding": True} if interpolates else {}
        expected = model(images, **more).last_hidden_state
        if config.model_type == "clip_vision_model":
            expected = model.post_layernorm(expected)
        if expected.ndim == 4 and hasattr(model, "layernorm"):
            expected = model.layernorm(expected.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    if expected.ndim == 3:
        cells = found.shape[2] * found.shape[3]
        expected = expected[:, -cells:].transpose(1, 2).reshape(found.shape)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ["vit", "dinov2", "more dinov2", "dinov3", "clip", "siglip"])
@pytest.mark.parametrize("cells", [(2, 3), (7, 9)])
def test_positions_of_other_grids_are_those_of_the_model(family, cells, tmp_path):
    config, _ = MORE[family.removeprefix("more ")] if family.startswith("more ") else FAMILIES[family]
    torch.manual_seed(0)
    model = T.AutoModel.from_config(config).eval()
    with torch.no_grad():
        for name, part in model.named_parameters():
            if "position_embedding" in name:
                part.normal_()
    model.save_pretrained(tmp_path)
    body = create_backbone(f"hf:{tmp_path}").eval()
    images = torch.randn(2, 3, *(body.step * side for side in cells))
    more = {"interpolate_pos_encoding": True} if family in ("vit", "clip", "siglip") else {}
    with torch.no_grad():
        found = body(images)
        expected = model(images, **more).last_hidden_state[:, -cells[0] * cells[1] :]
        if family == "clip":
            expected = model.post_layernorm(expected)
    expected = expected.transpose(1, 2).reshape(found.shape)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


def labelled(tmp_path, names, **options):
    config = T.ResNetConfig(embedding_size=8, layer_type="basic", **STAGED, **options)
    config.id2label = dict(enumerate(names))
    config.label2id = {name: number for number, name in enumerate(names)}
    model = T.ResNetForImageClassification(config).eval()
    model.save_pretrained(tmp_path)
    return model


def test_the_classifier_of_imagenet_is_offered_and_any_other_is_not(tmp_path):
    table = wordnet()
    names = [", ".join(table.nodes[id].words) for id in table.ids]
    model = labelled(tmp_path / "imagenet", names)
    body = create_backbone(f"hf:{tmp_path / 'imagenet'}").eval()
    concepts = body.concepts()
    assert concepts is not None and concepts.ids == table.ids
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(concepts.logits(body(images).mean((2, 3))), model(images).logits)
    labelled(tmp_path / "reversed", names[::-1])
    assert create_backbone(f"hf:{tmp_path / 'reversed'}").concepts() is None
    labelled(tmp_path / "few", ["a", "b"])
    assert create_backbone(f"hf:{tmp_path / 'few'}").concepts() is None


def test_rungs_names_and_bayes_are_tried(squares_data, tmp_path):
    table = wordnet()
    labelled(tmp_path / "model", [", ".join(table.nodes[id].words) for id in table.ids])
    ties = {"ties": {"red": ["zebra"], "blue": ["dog"]}}
    options = {"image_size": 64, "method_options": ties, "out": tmp_path / "run", "progress": False}
    sarb.fit(squares_data.train, backbone=f"hf:{tmp_path / 'model'}", **options)
    with (tmp_path / "run" / "log.csv").open(encoding="utf-8") as file:
        assert {"names", "bayes"} <= {row["rung"] for row in csv.DictReader(file)}


def two_towers(folder, kind):
    """A CLIP or SigLIP model with a tokenizer that knows the letters."""
    text = {
        **BLOCKS,
        "vocab_size": 64,
        "max_position_embeddings": 40,
        "projection_dim": 16,
        "projection_size": 32,
    }
    image = {**BLOCKS, "image_size": 48, "patch_size": 16}
    if kind == "clip":
        config = T.CLIPConfig(text_config={**text, "eos_token_id": 1}, vision_config=image, projection_dim=16)
        model = T.CLIPModel(config)
    else:
        model = T.SiglipModel(T.SiglipConfig(text_config=text, vision_config=image))
    torch.manual_seed(0)
    model.save_pretrained(folder)
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    letters = {
        token: number for number, token in enumerate(["<pad>", "</s>", "?", *"abcdefghijklmnopqrstuvwxyz ."])
    }
    tokenizer = Tokenizer(models.WordLevel(letters, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast = T.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>")
    fast.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_names_become_vectors_of_the_text_encoder(kind, squares_data, tmp_path, capsys):
    model = two_towers(tmp_path / "model", kind)
    source = f"hf:{tmp_path / 'model'}"
    vectors = text_vectors(source, ["red", "green", "dark_blue", "red"])
    assert np.allclose(np.sqrt((vectors**2).mean(1)), 0.4, atol=1e-5)
    assert np.allclose(vectors[0], vectors[3]) and not np.allclose(vectors[0], vectors[1], atol=1e-4)
    body = create_backbone(source).eval()
    images = torch.randn(2, 3, 48, 48)
    with torch.no_grad():
        hidden = model.vision_model(images).last_hidden_state
        if kind == "clip":
            hidden = model.vision_model.post_layernorm(hidden)[:, 1:]
        expected = hidden.transpose(1, 2).reshape(2, 32, 3, 3)
        torch.testing.assert_close(body(images), expected, atol=1e-4, rtol=1e-4)
    options = {"recipe": "small", "network": "ssgrl", "method": "partial_bce", "epochs": 1, "image_size": 48}
    options |= {"network_options": {"csrl": "sd"}}
    made = sarb.fit(squares_data.train, backbone=source, out=tmp_path / "run", **options)
    assert made.config["word_source"] == source and made.network.words.found.all()
    assert json.loads((tmp_path / "run" / "config.json").read_text())["words"] == f"text encoder of {source}"
    assert "category names: vectors of the text encoder" in capsys.readouterr().err
    masks = {**options, "network_options": {"csrl": "sam"}}
    assert "word_source" not in sarb.fit(squares_data.train, backbone=source, **masks).config
    assert "text encoder" not in capsys.readouterr().err
    learned = sarb.fit(squares_data.train, backbone=source, words="none", progress=False, **options)
    assert not learned.network.words.found.any()
    other = sarb.fit(
        squares_data.train, backbone="tiny", words=source, progress=False, **{**options, "image_size": 64}
    )
    assert torch.equal(other.network.words.given, made.network.words.given)


def test_input_size_and_normalisation_come_from_the_files(tmp_path):
    config, _ = FAMILIES["vit"]
    config.save_pretrained(tmp_path)
    name = f"hf:{tmp_path}"
    assert resolve(backbone=name).image_size == 48
    assert resolve(backbone=name, image_size=64).image_size == 64
    assert create_backbone(name, None).mean == (127.5, 127.5, 127.5)
    processor = {
        "image_mean": [0.1, 0.2, 0.3],
        "image_std": [0.4, 0.5, 0.6],
        "size": {"height": 64, "width": 64},
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    assert resolve(backbone=name).image_size == 64
    assert create_backbone(name, None).std == pytest.approx((102, 127.5, 153))


def test_the_own_size_is_one_that_fits(tmp_path):
    T.SiglipVisionConfig(**BLOCKS, image_size=384, patch_size=14).save_pretrained(tmp_path)
    assert resolve(backbone=f"hf:{tmp_path}").image_size == 378
    create_backbone(f"hf:{tmp_path}", None).check_size(378)
    T.Dinov2Config(image_size=518).save_pretrained(tmp_path)  # the size of its patches is the usual one
    assert resolve(backbone=f"hf:{tmp_path}").image_size == 518


def test_a_bin_file_is_read_without_running_code(tmp_path):
    config, _ = FAMILIES["vit"]
    model = T.ViTModel(config).eval()
    config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    found = create_backbone(f"hf:{tmp_path}").state_dict()
    assert torch.equal(
        found["parts.block1.0.inner.layernorm_before.weight"], model.layers[0].layernorm_before.weight
    )
    torch.save({"weight": print}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"pytorch_model.bin: not a plain weight file"):
        create_backbone(f"hf:{tmp_path}")


def test_errors_are_one_line_each(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    T.BertConfig().save_pretrained(tmp_path / "bert")
    config, _ = FAMILIES["resnet"]
    config.save_pretrained(tmp_path / "no_weights")
    (tmp_path / "empty").mkdir()
    cases = {
        "facebook/dinov2-small": "cannot be fetched .*hf download facebook/dinov2-small",
        str(tmp_path / "missing"): "no such folder",
        str(tmp_path / "empty"): "there is no config.json",
        str(tmp_path / "bert"): "unknown type of model 'bert'.* Available: clip_vision_model",
        str(tmp_path / "no_weights"): "there is no weight file",
    }
    for name, message in cases.items():
        with pytest.raises(ConfigError, match=message) as caught:
            create_backbone(f"hf:{name}")
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="does not make a model"):
        create_backbone("hf:any", None, architecture={"model_type": "vit", "hidden_size": "many"})
    with pytest.raises(ConfigError, match="unknown type of model 'evil'"):
        create_backbone("hf:any", None, architecture={"model_type": "evil", "auto_map": {"AutoModel": "x.Y"}})
    with pytest.raises(ConfigError, match="a resnet model has no text encoder"):
        text_vectors(f"hf:{tmp_path / 'no_weights'}", ["red"])
