"""The model folder travels: alone, with its card and thresholds, and by way of a hub that is only pretended
here.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import sarb
from sarb.errors import ConfigError, SarbError
from sarb.inference.hub import push_to_hub
from sarb.labelling.calibration import Calibration
from sarb.model import Model
from sarb.runs.folder import RunFolder
from sarb.runs.lookup import hub_id
from sarb.workflows.training import train_session
from tests.documentation.tools import FAST
from tests.test_model import make


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, squares: Path) -> Path:
    folder, _ = train_session(
        source=str(squares / "labels.csv"),
        data_options={"encoding": "binary"},
        known=0.5,
        given=FAST,
        quiet=True,
        out=tmp_path_factory.mktemp("runs") / "squares",
        page=False,
    )
    run = RunFolder(folder)
    plain = Calibration.identity(sarb.load_model(folder).categories)
    run.write_calibration(replace(plain, method="platt", slope=plain.slope * 2))
    return folder


class Hub:
    """What a hub does, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, list[tuple[str, Any]]()

    def api(self, token: str | None = None) -> Any:
        self.calls.append(("token", token))
        return SimpleNamespace(create_repo=self.create, upload_folder=self.upload)

    def create(self, repo: str, **options: Any) -> str:
        self.calls.append(("create", (repo, options)))
        return f"https://hub/{repo}"

    def upload(self, repo_id: str, folder_path: Path, **options: Any) -> None:
        self.calls.append(("upload", (repo_id, sorted(file.name for file in folder_path.iterdir()), options)))
        shutil.copytree(folder_path, self.folder / repo_id)

    def snapshot(self, repo: str, revision: str | None, allow_patterns: list[str], repo_type: str) -> str:
        self.calls.append(("download", (repo, revision, allow_patterns)))
        if not (self.folder / repo).is_dir():
            raise RuntimeError("404 Client Error.\n\nRepository Not Found for url …")
        return str(self.folder / repo)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    import huggingface_hub

    made = Hub(tmp_path / "hub")
    monkeypatch.setattr(huggingface_hub, "HfApi", made.api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", made.snapshot)
    monkeypatch.chdir(tmp_path)
    return made


def test_a_model_folder_copied_alone_predicts_identically(
    trained: Path, squares: Path, tmp_path: Path
) -> None:
    files = sorted(squares.glob("*.jpg"))
    expected = sarb.predict(sarb.load_model(trained), files)
    shutil.copytree(trained / "model", tmp_path / "elsewhere")
    assert sarb.predict(sarb.load_model(tmp_path / "elsewhere"), files) == expected
    assert sarb.predict(Model.from_pretrained(tmp_path / "elsewhere"), files) == expected


def test_save_pretrained_keeps_card_and_thresholds(trained: Path, squares: Path, tmp_path: Path) -> None:
    model = sarb.load_model(trained)
    folder = model.save_pretrained(tmp_path / "mine", license="cc-by-4.0")
    names = ["README.md", "config.json", "manifest.json", "model.safetensors", "thresholds.json"]
    assert sorted(file.name for file in folder.iterdir()) == names
    assert (folder / "thresholds.json").read_bytes() == (trained / "thresholds.json").read_bytes()
    before, after = ((place / "README.md").read_text() for place in (trained / "model", folder))
    assert yaml.safe_load(before.split("---")[1])["license"] == "unknown"
    assert yaml.safe_load(after.split("---")[1])["license"] == "cc-by-4.0"
    assert after.rstrip().endswith("## Licence\n\ncc-by-4.0")
    again = sarb.load_model(folder)
    again.save_pretrained(folder)  # onto itself
    assert sorted(file.name for file in folder.iterdir()) == names
    assert (folder / "README.md").read_text() == after
    assert sarb.predict(again, [squares / "00.jpg"]) == sarb.predict(model, [squares / "00.jpg"])
    with pytest.raises(ConfigError, match="license is an identifier"):
        model.save_pretrained(tmp_path / "other", license="do what\nyou want")


def test_a_fresh_model_has_a_short_card(tmp_path: Path) -> None:
    text = (make().save_pretrained(tmp_path / "m") / "README.md").read_text()
    assert yaml.safe_load(text.split("---")[1])["library_name"] == "sarb"
    assert "3 categories: a, b, c." in text


def test_push_and_load_by_id(trained: Path, squares: Path, hub: Hub) -> None:
    model = sarb.load_model(trained)
    assert (
        model.push_to_hub("anna/squares", private=True, token="secret", license="mit")
        == "https://hub/anna/squares"
    )
    (_, token), (_, (repo, options)), (_, (uploaded, names, _)) = hub.calls
    assert (token, repo, uploaded) == ("secret", "anna/squares", "anna/squares")
    assert options["private"] and options["exist_ok"]
    assert names == ["README.md", "config.json", "manifest.json", "model.safetensors", "thresholds.json"]
    assert model.folder == trained / "model"  # not the folder that is gone
    for name in ("anna/squares", Path("anna/squares"), "hf:anna/squares"):
        again = sarb.load_model(name)
        assert sarb.predict(again, [squares / "00.jpg"]) == sarb.predict(model, [squares / "00.jpg"])
    sarb.load_model("anna/squares@v1")
    assert hub.calls[-1][1][:2] == ("anna/squares", "v1")
    assert "model.safetensors" in hub.calls[-1][1][2]


def test_errors_of_the_hub_are_one_line(hub: Hub) -> None:
    with pytest.raises(SarbError, match=r"^bob/none: no such .* Hugging Face hub \(404 Client Error\.\)$"):
        sarb.load_model("bob/none")
    with pytest.raises(ConfigError, match="expected owner/name, got 'just-a-name'"):
        push_to_hub(make(), "just-a-name")


def test_a_slip_of_the_pen_is_not_looked_up(hub: Hub, tmp_path: Path) -> None:
    make().save(tmp_path / "models" / "squares")
    with pytest.raises(
        SarbError, match=r"models/sqares: no such run or model folder\. Did you mean 'models/squares'\?"
    ):
        sarb.load_model("models/sqares")
    for name in ("runs/none", "./a/b", "/a/b", "a", "a/b/c", "../a"):
        assert not hub_id(name)
        with pytest.raises(SarbError, match="no such run or model folder"):
            sarb.load_model(name)
    assert hub.calls == []
    assert hub_id("hf:models/squares")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(SarbError, match=r"pip install 'sarb\[hub\]'"):
        sarb.load_model("nobody/nothing")


def test_the_model_that_fit_returns_knows_its_card(trained: Path, squares_data: Any, tmp_path: Path) -> None:
    model = sarb.fit(squares_data.train, out=tmp_path / "run", progress=False, **FAST)
    card = (model.save_pretrained(tmp_path / "copy") / "README.md").read_text()
    assert card == (tmp_path / "run" / "model" / "README.md").read_text()
    assert np.isfinite(sarb.predict(model, [squares_data.test.paths[0]]).logits).all()
