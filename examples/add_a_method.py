"""Train with a method of your own, from outside the package: unknown labels count a little as absent.

Expect a log with the method's own loss term, ``loss_assumed``. See docs/add-a-method.md and docs/plug-ins.md.
"""

from pathlib import Path

import sarb
from sarb.labels import Targets
from sarb.methods import Method
from sarb.registry import register


class AssumeNegative(Method):
    """L = L_cls(known) + ε L_cls(unknown read as absent)."""

    def __init__(self, network, *, epsilon: float = 0.1):
        super().__init__(network)
        self.epsilon = epsilon  # --set method.epsilon=0.3

    def forward(self, batch):
        """Batch -> named loss terms."""
        known = Targets.of(batch.labels)
        assumed = Targets(known.value.new_zeros(known.value.shape), 1 - known.weight)
        logits = self.network.head(self.maps(batch))
        return {"cls": self.loss(logits, known), "assumed": self.epsilon * self.loss(logits, assumed)}


register("method", "assume_negative", AssumeNegative)
data = sarb.load("demo", train=64, test=32, size=64)
train = data.train.hide(known=0.3, seed=0)
small = {"network": "pooled", "backbone": "tiny", "image_size": 64, "epochs": 2, "resume": True}
model = sarb.fit(train, method="assume_negative", out="runs/example-method", **small)
print(Path("runs/example-method/log.csv").read_text(encoding="utf-8"))
