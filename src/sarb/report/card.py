"""The model card: what a model is, its training data, metrics, limits and licence."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.report.markdown import inline

if TYPE_CHECKING:
    from sarb.model import Model

#: metrics shown in the card, and what they are
FIGURES = {
    "mAP": "mean average precision",
    "mAP_interpolated": "the same, interpolated as in the paper",
    "OF1": "F1 over all labels",
    "CF1": "mean of the categories' F1",
}
#: categories with fewer known positives are listed under the limits
FEW = 5
#: most categories in a list of names
LISTED = 50
UNSTATED = (
    "not stated. The weights derive from the training images and the pre-trained backbone, whose licences "
    'may apply to you; set yours with `save_pretrained(…, license="…")`.'
)


def model_card(
    model: Model,
    settings: Mapping[str, Any],
    labels: LabelMatrix,
    *,
    data: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    license: str | None = None,
) -> str:
    """Return the README of a model folder, in Markdown with the front matter of the Hugging Face hub.

    Args:
        model: the model.
        settings: the training settings.
        labels: the training labels.
        data: the section ``data`` of the run's ``config.json``, for the name of the data.
        metrics: the content of ``metrics.json``; None before the test.
        license: a licence identifier, or None.
    """
    title = f"{settings['method']} on {settings['network']} / {settings['backbone']}"
    name = str(
        (data or {}).get("name") or "own data"
    )  # not the source: a local path must not end up on the hub
    return f"""{front_matter(title, license, name, metrics)}
# {title}

Multi-label image recogniser for {len(model.categories)} categories, trained with
[sarb](https://pypi.org/project/sarb/) from partial labels.

{_use()}
## Data

| | |
|---|---|
| data | {inline(name)} |
| images trained on | {len(labels):,} |
| known labels | {100 * labels.known_share:.1f} % of {labels.values.size:,} |
| known positives per category | {int(labels.positives.min())} to {int(labels.positives.max())} |
| input | {settings["image_size"]} × {settings["image_size"]} pixels, squashed to a square |
{_schedule(model, settings)}

**Categories:** {_names(model)}.

## Metrics

{_metrics(metrics)}

## Limits

Probabilities are calibrated only if the folder has a `thresholds.json`.
The model knows only its own categories.
{_poor(labels)}{_bank(model)}

## Licence

{license or UNSTATED}
"""


def short_card(model: Model) -> str:
    """The card of a model without a run: nothing is known about its training."""
    title = f"{model.config['network']} / {model.config['backbone']}"
    return f"""{front_matter(title, None, None, None)}
# {title}

Multi-label image recogniser for {len(model.categories)} categories: {_names(model)}.

{_use()}
## Data, metrics, limits

Not recorded.{_bank(model)}

## Licence

{UNSTATED}
"""


def front_matter(title: str, license: str | None, data: str | None, metrics: Mapping[str, Any] | None) -> str:
    """The YAML header; JSON values are YAML, so any name is safe in it."""
    measured = _measured(metrics)
    fields: dict[str, Any] = {
        "license": license or "unknown",
        "library_name": "sarb",
        "pipeline_tag": "image-classification",
        "tags": ["multi-label", "partial-labels", "sarb"],
        "metrics": list(measured) or ["mAP"],
    }
    if data is not None:
        fields["datasets"] = [data]
    if measured:
        entries = [
            {"type": name, "value": round(value, 2), "name": FIGURES[name]}
            for name, value in measured.items()
        ]
        task = {"type": "image-classification", "name": "multi-label image classification"}
        result = {"task": task, "dataset": {"type": "image", "name": data or "own data"}, "metrics": entries}
        fields["model-index"] = [{"name": title, "results": [result]}]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    return "\n".join(["---", *lines, "---", ""])


def with_license(card: str, license: str) -> str:
    """Put a licence into a card, in the header and under its heading."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", license):
        raise ConfigError([f"license is an identifier such as apache-2.0 or cc-by-4.0, got '{license}'"])
    card = re.sub(r"^license: .*$", f'license: "{license}"', card, count=1, flags=re.M)
    return re.sub(
        r"(^## Licence\n\n).*?(?=\n\n## |\Z)", rf"\g<1>{license}\n", card, count=1, flags=re.M | re.S
    )


def _use() -> str:
    return """```python
import sarb
model = sarb.load_model("THIS FOLDER")
print(sarb.predict(model, ["photo.jpg"]).top(3))
```
"""


def _names(model: Model) -> str:
    more = f" and {len(model.categories) - LISTED} more" if len(model.categories) > LISTED else ""
    return ", ".join(map(inline, model.categories[:LISTED])) + more


def _metrics(metrics: Mapping[str, Any] | None) -> str:
    measured = _measured(metrics)
    if not measured:
        return "Not tested."
    lines = [f"| {name} | {value:.1f} | {FIGURES[name]} |" for name, value in measured.items()]
    return "\n".join(
        ["On the test images, in percent, known labels only:", "", "| | | |", "|---|---|---|", *lines]
    )


def _measured(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    """The figures that are shown and were measured."""
    return {name: metrics[name] for name in FIGURES if metrics and metrics.get(name) is not None}


def _schedule(model: Model, settings: Mapping[str, Any]) -> str:
    """Epochs and seed; of a network that is fitted, the seed only."""
    if "fit" in model.network.stages:
        return f"| seed | {settings['seed']} |"
    return f"| epochs, seed | {settings['epochs']}, {settings['seed']} |"


def _bank(model: Model) -> str:
    """Say that the model holds training images, as vectors; nothing for a model without a neighbour bank."""
    count = model.config["network_options"].get("bank", 0)
    if not count:
        return ""
    images = "1 training image" if count == 1 else f"{count:,} training images"
    return (
        f"\nThe weights contain the feature vectors and labels of {images}, to look up neighbours; "
        "whoever has the model has them."
    )


def _poor(labels: LabelMatrix) -> str:
    poor = [name for name, count in zip(labels.categories, labels.positives, strict=True) if count < FEW]
    if not poor:
        return "Every category had at least five known positives."
    more = f" and {len(poor) - LISTED} more" if len(poor) > LISTED else ""
    return f"Fewer than five known positives: {', '.join(map(inline, poor[:LISTED]))}{more}."
