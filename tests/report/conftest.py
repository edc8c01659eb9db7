"""A small run folder with everything in it, drawn and drawn at random."""

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from sarb.labels import LabelMatrix
from sarb.report import Report, html, samples, sections
from sarb.scores import Scores

NASTY = ["cat", "<script>alert(1)</script>", "a & \"b\" 'c'", "US$ or CA$", "[bold]rich[/bold]"]


def names(count):
    return [NASTY[index] if index < len(NASTY) else f"thing {index}" for index in range(count)]


def draw_pictures(folder, count):
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for index in range(count):
        picture = Image.new("RGB", (96, 72), (40 + 9 * index, 120, 220 - 9 * index))
        ImageDraw.Draw(picture).ellipse((10, 10, 60, 60), fill=(240, 20 * index % 255, 60))
        paths.append(str(folder / f"photo <{index}> & co.jpg"))
        picture.save(paths[-1])
    return paths


def make_case(categories, images=24, seed=0, paths=None):
    """Scores that are better than chance, and labels of which some are unknown; the last category has no
    positive.
    """
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random((images, categories)) < 0.35, 1, -1)
    logits = truth * rng.uniform(0.3, 2.5, categories) + rng.normal(size=truth.shape)
    values = np.where(rng.random(truth.shape) < 0.1, 0, truth)
    if categories > 2:
        values[:, -1] = np.minimum(values[:, -1], 0)
    labels = LabelMatrix(values, names(categories), paths)
    return Scores(logits, labels.categories, labels.paths), labels


LOG = (
    "epoch,loss,loss_cls,loss_cst,loss_ilrb,loss_plrb,lr,alpha,beta,"
    "completed_ilrb,completed_plrb,known,valid_mAP,valid_OF1,seconds"
)
LOG += """
0,0.9,0.8,0.1,0,0,0.001,0.5,0.5,0,0,300,20.5,10,30.5
1,0.7,0.65,0.05,0,0,0.001,0.5,0.5,0,0,300,30.5,20,30.5
2,0.8,0.4,0.05,0.2,0.15,0.001,0.51,0.48,120,60,300,28,25,30.5
"""

STEPS = "step,epoch,loss\n" + "".join(f"{step},{step // 4},{1 / (step + 1)}\n" for step in range(12))


def fill_run(folder, categories=6, with_pictures=True):
    folder.mkdir(parents=True, exist_ok=True)
    paths = draw_pictures(folder / "pictures", 14) if with_pictures else [f"/gone/{i}.jpg" for i in range(14)]
    scores, labels = make_case(categories, 14, paths=paths)
    scores.save(folder / "scores.npz")
    labels.save(folder / "test_labels.npz")
    labels.hide(0.6, seed=1).save(folder / "labels.npz")
    (folder / "log.csv").write_text(LOG)
    (folder / "steps.csv").write_text(STEPS)
    config = {
        "settings": {
            "network": "ssgrl",
            "method": "sarb",
            "backbone": "tiny",
            "seed": 7,
            "epochs": 3,
            "graph_smoothing": 0,
        },
        "data": {"name": "<demo>", "known": 0.6, "command": "sarb train --data '<demo>' --known 0.6"},
        "versions": {"torch": "2.13.0"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.json").write_text(Report.of(scores, labels).to_json())
    return folder


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave out the drawing, which has its own tests and takes nearly all the time."""
    monkeypatch.setattr(
        sections,
        "_plot",
        lambda run, name, draw, alternative, caption, style="": html.Plot("", "", alternative, caption),
    )
    monkeypatch.setattr(samples, "sample_grid", lambda shown: b"")


@pytest.fixture
def run(tmp_path):
    return fill_run(tmp_path / "my <run>")
