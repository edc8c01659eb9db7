"""The exported model at work: same scores, same files, no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarb
from sarb.data.images import EvalTransform
from sarb.errors import ImageError, SarbError
from sarb.inference.export import export
from sarb.inference.onnx import OnnxModel, describe
from sarb.labelling.calibration import Calibration
from tests.documentation.tools import run
from tests.inference.test_export import NAMES, hand_made, make


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(make(), tmp_path_factory.mktemp("onnx") / "model.onnx", progress=False).path


@pytest.fixture
def files(squares: Path) -> list[Path]:
    return sorted(squares.glob("*.jpg"))[:9]


def test_scores_are_those_of_torch(exported: Path, files: list[Path]) -> None:
    expected = sarb.predict(make(), files)
    for batch in (1, 4, 32):
        found = OnnxModel(exported).predict(files, batch_size=batch)
        assert (found.categories, found.paths) == (expected.categories, expected.paths)
        np.testing.assert_allclose(found.logits, expected.logits, atol=1e-4)


def test_pictures_arrays_and_one_path(exported: Path, files: list[Path]) -> None:
    model = OnnxModel(exported)
    array = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    found = model.predict([array, files[0]])
    assert found.paths == ("image 0", str(files[0]))
    np.testing.assert_allclose(found.logits, sarb.predict(make(), [array, files[0]]).logits, atol=1e-4)
    assert model.predict(files[0]).shape == (1, 5)
    assert model.predict([]).shape == (0, 5)


def test_unreadable_images_are_listed_or_an_error(exported: Path, files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    given, skipped = [files[0], tmp_path / "bad.jpg", files[1]], list[tuple[str, str]]()
    found = OnnxModel(exported).predict(given, skipped=skipped, batch_size=2)
    assert found.paths == (str(files[0]), str(files[1]))
    assert [name for name, _ in skipped] == [str(tmp_path / "bad.jpg")]
    with pytest.raises(ImageError, match=r"bad\.jpg"):
        OnnxModel(exported).predict(given)


def test_files_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(SarbError, match=r"none\.onnx: no such file; 'sarb export RUN none\.onnx'"):
        OnnxModel(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"rubbish")
    with pytest.raises(SarbError, match=r"bad\.onnx: not an ONNX model"):
        OnnxModel(tmp_path / "bad.onnx")


@pytest.mark.parametrize(
    ("change", "message"),
    [({"categories": None}, "not exported by sarb"), ({"sarb_format": "2"}, "newer sarb")],
)
def test_metadata_that_do_not_fit(
    change: dict[str, Any], message: str, exported: Path, tmp_path: Path
) -> None:
    import onnx

    proto = onnx.load(str(exported))
    stored = {entry.key: entry.value for entry in proto.metadata_props} | change
    del proto.metadata_props[:]
    for key, value in stored.items():
        if value is not None:
            proto.metadata_props.add(key=key, value=value)
    onnx.save(proto, str(tmp_path / "other.onnx"))
    with pytest.raises(SarbError, match=message):
        OnnxModel(tmp_path / "other.onnx")


def test_description_says_how_to_prepare_an_image() -> None:
    transform = EvalTransform(32, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    stored = describe(["a", "ü"], transform, {"network": "pooled"}, Calibration.identity(["a", "ü"]))
    rule = json.loads(stored["preprocessing"])
    assert (rule["size"], rule["mean"], rule["std"]) == (32, [1, 2, 3], [4, 5, 6])
    assert json.loads(stored["categories"]) == ["a", "ü"]
    assert "calibration" not in stored


def test_predict_command_without_torch(exported: Path, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "predictions.csv"
    words = ["sarb", "predict", "--onnx", str(exported), *map(str, files), "--out", str(out)]
    code = f"""
import sys
from sarb.cli.app import main
sys.argv = {words!r}
try:
    main()
except SystemExit as end:
    print(end.code, sorted({{"torch", "sklearn", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []", done.stderr
    expected = sarb.predict(make(), files).to_csv().splitlines()
    found = out.read_text(encoding="utf-8").splitlines()
    assert found[0] == expected[0] == "file_name," + ",".join(NAMES)
    for line, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(
            [*map(float, line.split(",")[1:])], [*map(float, other.split(",")[1:])], atol=1e-4
        )


@pytest.mark.parametrize("isotonic", [False, True])
@pytest.mark.parametrize("batch", [1, 7])
def test_predict_command_with_a_calibration(
    isotonic: bool, batch: int, files: list[Path], tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    folder, file = make().save(tmp_path / "run" / "model"), tmp_path / "model.onnx"
    calibration = hand_made(NAMES, isotonic)
    calibration.save(folder / "thresholds.json")
    export(sarb.load_model(tmp_path / "run"), file, progress=False)

    def said(*words: str) -> Any:
        capsys.readouterr()
        assert (
            run(["sarb", "predict", *words, *map(str, files), "--batch-size", str(batch)], monkeypatch) == 0
        )
        return capsys.readouterr().out

    onnx, torch = ("--onnx", str(file)), (str(tmp_path / "run"),)
    tables = []
    for number, words in enumerate((onnx, torch)):
        said(*words, "--out", str(tmp_path / f"{number}.csv"))
        lines = (tmp_path / f"{number}.csv").read_text(encoding="utf-8").splitlines()[1:]
        tables.append(np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines]))
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-5)
    np.testing.assert_allclose(tables[1], calibration(sarb.predict(make(), files)), atol=1e-5)
    assert np.abs(tables[0] - sarb.predict(make(), files).probabilities).max() > 0.05
    found = [
        {each["file_name"]: [*each["labels"]] for each in json.loads(said(*way, "--json"))}
        for way in (onnx, torch)
    ]
    assert found[0] == found[1] and len(found[0]) == len(files)


def test_a_calibration_that_is_damaged(exported: Path, tmp_path: Path) -> None:
    import onnx

    proto = onnx.load(str(exported))
    proto.metadata_props.add(key="calibration", value='{"format": 1}')
    onnx.save(proto, str(tmp_path / "other.onnx"))
    with pytest.raises(SarbError, match=r"other\.onnx: cannot be read as a calibration"):
        OnnxModel(tmp_path / "other.onnx")
    assert not OnnxModel(exported).calibration.fitted


def test_predict_command_errors(
    exported: Path, files: list[Path], tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    assert (
        run(
            ["sarb", "predict", "--onnx", str(exported), str(tmp_path / "bad.jpg"), str(files[0])],
            monkeypatch,
        )
        == 3
    )
    assert "skipped" in capsys.readouterr().err
    assert run(["sarb", "predict", "--onnx", str(exported)], monkeypatch) == 2
    assert run(["sarb", "predict", str(tmp_path)], monkeypatch) == 2
    assert "no image given" in capsys.readouterr().err
