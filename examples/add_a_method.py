"""Train with a method of your own, from outside the package: unknown labels count a little as absent.

Expect a log with the method's own loss term, ``loss_assumed``. See docs/add-a-method.md.
"""

from pathlib import Path

import sarb
from sarb.labels import Targets
from sarb.methods.base import Method


class AssumeNegative(Method):
    """L = L_cls(known) + 0.1 L_cls(unknown read as absent)."""

    def forward(self, batch):
        """Batch -> named loss terms."""
        known = Targets.of(batch.labels)
        assumed = Targets(known.value.new_zeros(known.value.shape), 1 - known.weight)
        logits = self.network.head(self.maps(batch))
        return {"cls": self.loss(logits, known), "assumed": 0.1 * self.loss(logits, assumed)}


sarb.METHODS["assume_negative"] = (
    f"{__name__}:AssumeNegative"  # "my_file:AssumeNegative" if it is in a file of its own
)
data = sarb.load("demo", train=64, test=32, size=64)
train = data.train.hide(known=0.3, seed=0)
small = {"network": "pooled", "backbone": "tiny", "image_size": 64, "epochs": 2}
model = sarb.fit(train, method="assume_negative", out="runs/example-method", resume=True, **small)
print(Path("runs/example-method/log.csv").read_text(encoding="utf-8"))
