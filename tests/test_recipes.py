"""The three paper recipes train one step and predict, on fixtures in the true file formats."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import sarb
from sarb.networks import create_backbone
from sarb.workflows.training import train_session
from tests.data.fixtures import write_coco, write_visual_genome, write_voc


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A torchvision-layout file, here with random weights and the classifier a real file has."""
    file = tmp_path_factory.mktemp("weights") / "resnet101.pth"
    torch.manual_seed(0)
    state = create_backbone("resnet101", weights=None).state_dict()
    torch.save({**state, "fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}, file)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "write", "sizes", "options"),
    [
        ("coco2014", write_coco, {"train": 3, "test": 1}, {}),
        ("voc2007", write_voc, {"train": 3, "test": 1}, {}),
        ("vg200", write_visual_genome, {"images": 4}, {"categories": 3, "test": 1}),
    ],
)
@pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")
def test_paper_recipe_trains_and_predicts(
    recipe: str,
    write: Callable[..., Any],
    sizes: dict[str, int],
    options: dict[str, int],
    weights: Path,
    tmp_path: Path,
) -> None:
    root = tmp_path / "data"
    write(root, **sizes)
    scheme = {"coco2014": "coco", "voc2007": "voc", "vg200": "vg"}[recipe]
    # all of the recipe but the number of epochs; blending from the first one, so that its whole step is run
    folder, report = train_session(
        source=f"{scheme}:{root}",
        recipe=recipe,
        data_options=options,
        known=0.5,
        out=tmp_path / "run",
        quiet=True,
        given={"epochs": 1, "workers": 0, "batch_size": 3},
        assignments=[f"backbone.weights={weights}", "method.start=0"],
    )
    settings = json.loads((folder / "config.json").read_text())["settings"]
    assert settings["image_size"] == 448
    assert settings["backbone"] == "resnet101"
    assert settings["network_options"]["dim"] == 1024
    log = (folder / "log.csv").read_text()
    assert "loss_plrb" in log
    assert report.metrics["images"] >= 1
    scores = sarb.predict(sarb.load_model(folder), sarb.load(f"{scheme}:{root}", **options).test)
    assert scores.logits.shape[1] == len(scores.categories)
