"""The model card: what a model is, what it was trained on, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sarb.labels import LabelMatrix

if TYPE_CHECKING:
    from sarb.model import Model


def model_card(model: Model, settings: Mapping[str, Any], labels: LabelMatrix) -> str:
    """Return the README of a model folder, in Markdown with the front matter of the Hugging Face hub."""
    shown = model.categories[:50]
    names = ", ".join(shown) + (f" and {len(model.categories) - 50} more" if len(model.categories) > 50 else "")
    poor = [name for name, count in zip(labels.categories, labels.positives, strict=True) if count < 5]
    limits = (
        f"Fewer than five known positives: {', '.join(poor)}."
        if poor
        else "Every category had five known positives or more."
    )
    return f"""---
library_name: sarb
pipeline_tag: image-classification
tags: [multi-label, partial-labels]
---

# {settings["method"]} on {settings["network"]} / {settings["backbone"]}

Multi-label image recogniser for {len(model.categories)} categories, trained with
[sarb](https://pypi.org/project/sarb/) from partial labels.

```python
import sarb
model = sarb.load_model("THIS FOLDER")
print(sarb.predict(model, ["photo.jpg"]).top(3))
```

| | |
|---|---|
| images trained on | {len(labels):,} |
| known labels | {100 * labels.known_share:.1f} % of {labels.values.size:,} |
| known positives per category | {int(labels.positives.min())} to {int(labels.positives.max())} |
| input | {settings["image_size"]} × {settings["image_size"]} pixels, squashed to a square |
| epochs, seed | {settings["epochs"]}, {settings["seed"]} |

**Categories:** {names}.

**Limits:** probabilities are not calibrated; the model knows nothing outside its categories. {limits}
"""
