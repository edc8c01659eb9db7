"""The model card says what the run's own files say."""

import numpy as np
import pytest
import yaml

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.report.card import model_card, short_card, with_license
from tests.test_model import make

SETTINGS = {
    "method": "sarb",
    "network": "ssgrl",
    "backbone": "tiny",
    "image_size": 64,
    "epochs": 3,
    "seed": 1,
}
METRICS = {"mAP": 41.512, "OF1": 30.0, "CF1": None, "per_category": []}


def labels():
    values = np.full((40, 3), -1)
    values[:10, 0], values[:2, 1], values[:, 2] = 1, 1, 0
    return LabelMatrix(values, ["a", "b", 'c: "x"'])


def header(card):
    return yaml.safe_load(card.split("---\n")[1])


def test_it_has_data_share_metrics_limits_and_licence():
    card = model_card(
        make(),
        SETTINGS,
        labels(),
        data={"name": "demo: 2", "source": "/home/me"},
        metrics=METRICS,
        license="mit",
    )
    for text in (
        "| data | demo: 2 |",
        "| images trained on | 40 |",
        "| known labels | 66.7 % of 120 |",
        "| mAP | 41.5 |",
        "| OF1 | 30.0 |",
        'Fewer than five known positives: b, c: "x".',
        "## Licence\n\nmit",
    ):
        assert text in card
    assert "CF1 |" not in card and "/home/me" not in card
    found = header(card)
    assert (found["license"], found["datasets"], found["metrics"]) == ("mit", ["demo: 2"], ["mAP", "OF1"])
    assert "partial-labels" in found["tags"]
    (result,) = found["model-index"][0]["results"]
    assert [(each["type"], each["value"]) for each in result["metrics"]] == [("mAP", 41.51), ("OF1", 30.0)]


@pytest.mark.parametrize("bank", [0, 1, 1200])
def test_a_neighbour_bank_is_a_limit(bank):
    options = {"width": 2, "bank": bank, "neighbours": 1}
    model = make(network="probe", network_options=options)
    images = {0: "", 1: "of 1 training image,", 1200: "of 1,200 training images,"}[bank]
    card = model_card(model, SETTINGS, labels())
    limits = card.split("## Limits")[1].split("## Licence")[0]
    for text in (limits, short_card(model)):
        assert ("feature vectors and labels" in text) == bool(bank)
        assert images in text
    assert "| seed | 1 |" in card and "epochs" not in card


def test_a_network_without_a_bank_says_nothing_of_it():
    card = model_card(make(), SETTINGS, labels())
    assert "feature vectors" not in card and "| epochs, seed | 3, 1 |" in card


def test_before_the_test_there_are_no_metrics():
    card = model_card(make(), SETTINGS, labels())
    assert "Not tested." in card
    assert "model-index" not in header(card)
    assert header(card)["license"] == "unknown"


@pytest.mark.parametrize(
    "card", [model_card(make(), SETTINGS, labels(), metrics=METRICS), short_card(make())]
)
def test_a_licence_is_put_in_both_places(card):
    changed = with_license(card, "cc-by-4.0")
    assert header(changed)["license"] == "cc-by-4.0"
    assert changed.endswith("## Licence\n\ncc-by-4.0\n")
    assert header(changed) | {"license": "unknown"} == header(card)
    with pytest.raises(ConfigError):
        with_license(card, 'x"\ny: z')


def test_names_of_categories_and_data_are_text_in_one_line():
    hostile = ["<img src=x onerror=alert(1)>", "[x](http://evil)", "a\n## Licence\n\nnone", "y" * 5000]
    values = np.zeros((40, 4))
    card = model_card(make(tuple(hostile)), SETTINGS, LabelMatrix(values, hostile), data={"name": hostile[0]})
    for text in (card, short_card(make(tuple(hostile)))):
        body = text.split("---\n", 2)[2]
        assert "<img" not in body and "](http://evil" not in body
        assert body.count("## Licence") == 1 and max(map(len, body.splitlines())) < 600
