"""Engines: equal to PyTorch within the tolerance, chosen by measurement, and never the end of a run."""

import gc
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import sarb
from sarb.batches import engines, openvino_engine
from sarb.batches.engines import BUILDERS, NAMES, choose_engine
from sarb.batches.features import View, cached_features
from sarb.data.images import EvalTransform
from sarb.errors import ConfigError
from sarb.networks import create_backbone
from sarb.networks.backbones.fold import CLOSE, folded
from sarb.progress import Progress


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    monkeypatch.setattr(engines, "_chosen", {})
    monkeypatch.delenv("SARB_ENGINE", raising=False)


@pytest.fixture
def always(monkeypatch):
    """Measure however little there is to compute."""
    monkeypatch.setattr(engines, "LEAST_IMAGES", 0)
    monkeypatch.setattr(engines, "LEAST_SECONDS", 0.0)


@pytest.fixture
def tiny():
    torch.manual_seed(0)
    return create_backbone("tiny", train_stages=1).eval()


def noise(count, size=32):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def chosen(backbone, images=1000, batch=None):
    """The engine, and what was said."""
    lines = []
    return choose_engine(backbone, lambda: noise(4) if batch is None else batch, images, lines.append), lines


@pytest.mark.parametrize("package", BUILDERS)
@pytest.mark.parametrize(
    ("name", "size"), [("tiny", 48), ("efficientnet_lite0", 64), ("efficientnet_lite0", 96), ("resnet18", 64)]
)
def test_an_engine_equals_pytorch_for_any_number_of_images(monkeypatch, name, size, package):
    monkeypatch.setenv("SARB_ENGINE", package)
    backbone = create_backbone(name, weights=None if name == "resnet18" else "default", train_stages=1)
    trunk = folded(backbone)
    engine, lines = chosen(trunk, batch=noise(5, size))
    assert engine.name == NAMES[package] and lines == [f"features by {engine.name}, as SARB_ENGINE says"]
    for count in (5, 1, 3):
        with torch.inference_mode():
            expected = backbone.eval().frozen(noise(count, size))
            found = engine.run(noise(count, size))
        assert found.dtype == torch.float32 and found.shape == expected.shape
        # Folding and engine together, against the backbone as it is.
        assert (found - expected).abs().max() <= 2 * CLOSE * expected.abs().max()


def test_results_of_two_batches_do_not_share_memory(monkeypatch, tiny):
    for package in BUILDERS:
        monkeypatch.setenv("SARB_ENGINE", package)
        engine, _ = chosen(tiny)
        first = engine.run(noise(2))
        kept = first.clone()
        engine.run(-noise(2))
        assert torch.equal(first, kept)


# the choice


def test_little_to_compute_is_not_measured(monkeypatch, tiny):
    def forbidden():
        raise AssertionError("no batch is needed")

    assert choose_engine(tiny, forbidden, engines.LEAST_IMAGES - 1, print).name == "PyTorch"
    monkeypatch.setattr(engines, "_fastest", forbidden)
    monkeypatch.setattr(engines, "_seconds", lambda engine, batch: 0.001)
    assert chosen(tiny, images=1000)[0].name == "PyTorch" and chosen(tiny)[1] == []


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((1.7, 1.5, 1.0), "features by OpenVINO: 1.7 x PyTorch on this machine (ONNX Runtime 1.1 x)"),
        ((3.0, 1.5, 2.0), "features by ONNX Runtime: 2.0 x PyTorch on this machine (OpenVINO 1.5 x)"),
        (
            (1.0, 2.0, 4.0),
            "features by PyTorch, the fastest on this machine (ONNX Runtime 0.5 x, OpenVINO 0.2 x)",
        ),
    ],
)
def test_the_fastest_is_taken_and_said(monkeypatch, always, tiny, seconds, expected):
    times = dict(zip(("PyTorch", "ONNX Runtime", "OpenVINO"), seconds, strict=True))
    monkeypatch.setattr(engines, "_seconds", lambda engine, batch: times[engine.name])
    engine, lines = chosen(tiny)
    assert lines == [expected] and engine.name == min(times, key=times.get)


def test_the_choice_is_kept_for_the_next_data_set(always, tiny):
    engine, lines = chosen(tiny)
    again, silence = chosen(tiny)
    assert len(lines) == 1 and silence == [] and again.name == engine.name
    with torch.no_grad():
        tiny.stage1[0].weight.add_(1)
    assert len(chosen(tiny)[1]) == 1


def test_without_a_package_pytorch_works_and_says_how_to_get_one(monkeypatch, always, tiny):
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    engine, lines = chosen(tiny)
    assert engine.name == "PyTorch" and lines == [
        "features by PyTorch (faster with pip install 'sarb[fast]')"
    ]
    monkeypatch.setenv("SARB_ENGINE", "openvino")
    engine, lines = chosen(tiny)
    assert engine.name == "PyTorch" and "OpenVINO is not installed" in lines[0] and "sarb[fast]" in lines[0]


def test_no_image_no_engine(monkeypatch, tiny):
    monkeypatch.setenv("SARB_ENGINE", "openvino")
    assert chosen(tiny, batch=noise(0))[0].name == "PyTorch"


# the environment variable


def test_torch_is_not_measured(monkeypatch, always, tiny):
    monkeypatch.setenv("SARB_ENGINE", " Torch")
    engine, lines = chosen(tiny)
    assert engine.name == "PyTorch" and lines == []


def test_a_wrong_name_is_an_error(monkeypatch, squares_data, tiny):
    monkeypatch.setenv("SARB_ENGINE", "openvinno")
    with pytest.raises(ConfigError, match=r"SARB_ENGINE: unknown engine 'openvinno'.*'openvino'"):
        cached_features(tiny, squares_data.train.take(np.arange(3)), EvalTransform(40))


# engines that cannot be used


def broken(content, threads):
    raise OSError("no such\ninstruction")


def wrong(content, threads):
    run = BUILDERS["openvino"](content, threads)
    return lambda images: run(images) * 1.001


def failing(content, threads):
    def run(images):
        raise RuntimeError("out of memory")

    return run


@pytest.mark.parametrize(
    ("builder", "reason"),
    [
        (broken, "ONNX Runtime is not used: OSError: no such instruction"),
        (failing, "ONNX Runtime is not used: RuntimeError: out of memory"),
        (wrong, "ONNX Runtime is not used: it differs from PyTorch by "),
    ],
)
def test_a_broken_engine_is_left_out_with_its_reason(monkeypatch, always, tiny, builder, reason):
    monkeypatch.setattr(engines, "BUILDERS", {"onnxruntime": builder, "openvino": BUILDERS["openvino"]})
    monkeypatch.setattr(engines, "_seconds", lambda engine, batch: float(engine.name == "PyTorch") + 1)
    engine, (first, second) = chosen(tiny)
    assert (
        engine.name == "OpenVINO" and first.startswith(reason) and second.startswith("features by OpenVINO")
    )
    monkeypatch.setenv("SARB_ENGINE", "onnxruntime")
    engine, (first, second) = chosen(tiny)
    assert engine.name == "PyTorch" and first.startswith(reason) and second == "features by PyTorch"


def test_a_trunk_that_cannot_be_exported_runs_in_pytorch(monkeypatch, always, tiny):
    monkeypatch.setattr("torch.onnx.export", broken)
    engine, lines = chosen(tiny)
    assert engine.name == "PyTorch" and lines[1:] == ["features by PyTorch"]
    assert lines[0].startswith("the backbone cannot be exported for a faster engine: TypeError")


def test_openvino_that_ends_the_process_ends_only_a_trial(monkeypatch, tiny):
    monkeypatch.setenv("SARB_ENGINE", "openvino")
    monkeypatch.setattr(openvino_engine, "TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGFPE)")
    engine, lines = chosen(tiny)
    assert engine.name == "PyTorch"
    assert lines == ["OpenVINO is not used: it ended a trial process by signal 8", "features by PyTorch"]
    engines._chosen.clear()
    monkeypatch.setattr(openvino_engine, "TRIAL", "raise ValueError('bad model')")
    assert chosen(tiny)[1][0] == "OpenVINO is not used: a trial process failed: ValueError: bad model"


def test_a_signal_after_many_models_does_no_harm(monkeypatch, tiny):
    """Each core of OpenVINO replaces the signal stack; the one that Python uses must stay in place."""
    monkeypatch.setenv("SARB_ENGINE", "openvino")
    for size in (32, 48, 64):
        chosen(tiny, batch=noise(2, size))
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        for _ in range(3):
            engines._chosen.clear()
            gc.collect()
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen


# the cache


def test_the_cache_has_the_same_key_and_equal_values(monkeypatch, tmp_path, squares_data):
    dataset = squares_data.train.take(np.arange(7))
    transform = EvalTransform(64)
    backbone = create_backbone("efficientnet_lite0")
    found = {}
    for package in ("torch", *BUILDERS):
        monkeypatch.setenv("SARB_ENGINE", package)
        monkeypatch.setenv("SARB_CACHE", str(tmp_path / package))
        features = cached_features(backbone, dataset, transform, batch_size=3)
        file = View(dataset, transform).file(backbone)
        record = json.loads(file.with_suffix(".json").read_text())
        assert record["engine"] == NAMES.get(package, "PyTorch")
        found[file.name, package] = features.activations.astype(np.float32)
    expected = next(iter(found.values()))
    assert len({name for name, _ in found}) == 1
    for values in found.values():
        # The tolerance of the engine, and one step of fp16.
        assert np.all(np.abs(values - expected) <= CLOSE * expected.max() + 1e-3 * np.abs(expected))


def test_the_choice_is_a_detail_of_the_progress(monkeypatch, always, tmp_path, squares_data, tiny, capsys):
    monkeypatch.setenv("SARB_CACHE", str(tmp_path))
    cached_features(tiny, squares_data.train, EvalTransform(32), progress=Progress(verbose=True))
    size, choice = capsys.readouterr().err.splitlines()
    assert size.startswith("features: ") and choice.startswith("features by ")
    cached_features(tiny, squares_data.train, EvalTransform(32), progress=Progress())
    assert capsys.readouterr().err == "features: from the feature cache\n"


def test_openvino_reports_nothing_to_its_makers(tmp_path):
    code = (
        "import sys, torch; from sarb.batches.engines import choose_engine\n"
        "from sarb.networks import create_backbone\n"
        "trunk = create_backbone('tiny', train_stages=1).eval()\n"
        "engine = choose_engine(trunk, lambda: torch.zeros(2, 3, 32, 32), 1, print)\n"
        "assert engine.name == 'OpenVINO', engine\n"
        "assert not any(name.startswith('openvino_telemetry') for name in sys.modules)\n"
    )
    home = {"HOME": str(tmp_path), "SARB_ENGINE": "openvino", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "intel").exists()


@pytest.mark.parametrize("wanted", ["auto", "onnxruntime"])
def test_training_on_files_uses_an_engine_that_is_named(monkeypatch, squares_data, wanted):
    calls = []
    real = BUILDERS["onnxruntime"]

    def counting(content, threads):
        run = real(content, threads)
        return lambda images: (calls.append(len(images)), run(images))[1]

    def weights():
        model = sarb.fit(
            squares_data.train,
            epochs=1,
            recipe="small",
            backbone="tiny",
            backbone_options={"train_stages": 1},
            image_size=96,  # not the size at which a fold is checked
            batch_size=4,  # so that validation has a second batch, which folds
            augment=True,
            progress=False,
            valid=0.2,
        )
        assert model.network.backbone.engine is None
        return model.network.state_dict()

    monkeypatch.setitem(BUILDERS, "onnxruntime", counting)
    monkeypatch.setenv("SARB_ENGINE", "torch")
    expected = weights()
    assert not calls
    monkeypatch.setenv("SARB_ENGINE", wanted)
    found = weights()
    assert bool(calls) == (wanted == "onnxruntime")
    for name, right in expected.items():
        torch.testing.assert_close(found[name], right, rtol=1e-3, atol=1e-4, msg=name)


def test_an_engine_runs_only_what_is_frozen(monkeypatch, tiny):
    monkeypatch.setenv("SARB_ENGINE", "onnxruntime")
    tiny.engine = engines.named_engine(tiny, lambda: noise(4), lambda line: None)
    images = noise(2).requires_grad_()
    tiny(images).sum().backward()
    assert images.grad is not None  # with gradients, as in explain, PyTorch runs
    tiny.freeze(0)
    assert tiny.engine is None
    tiny.freeze(len(tiny.stage_names))
    assert engines.named_engine(tiny, lambda: noise(4), lambda line: None) is None
