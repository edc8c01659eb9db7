"""Train with a network of your own, from outside the package: one learned query per category looks for it.

Expect the epochs of a SARB run, a line that explains a picture, and one about the exported file. See
docs/plug-ins.md.
"""

from typing import ClassVar

import torch
from torch import nn

import sarb
from sarb.networks import CategoryLinear, Network
from sarb.registry import register


class Queries(Network):
    """a_cp = softmax_p(q_c · x_p), f_c = Σ_p a_cp x_p, logit_c = w_c · (f + s A f)_c + b_c."""

    parts: ClassVar = {"backbone": "backbone", "queries": "queries", "classifier": "classifier"}
    per_category = ("queries", "classifier.")
    from_data = ("cooccurrence",)

    def __init__(self, backbone, categories, graph=None, words=None, *, share: float = 0.5):
        super().__init__(backbone, categories)
        self.share = share  # --set network.share=0.3
        self.queries = nn.Parameter(torch.randn(categories, self.dim) / self.dim)
        self.classifier = CategoryLinear(categories, self.dim)
        self.register_buffer("cooccurrence", torch.eye(categories) if graph is None else graph)

    def attention(self, maps):
        """Maps (B, D, H, W) -> attention (B, C, H, W)."""
        return (self.queries @ maps.flatten(2)).softmax(-1).unflatten(2, maps.shape[2:])

    def represent(self, maps):
        """Maps (B, D, H, W) -> representations (B, C, D)."""
        return self.attention(maps).flatten(2) @ maps.flatten(2).transpose(1, 2)

    def classify(self, features):
        """Representations (B, C, D) -> logits (B, C)."""
        return self.classifier(features + self.share * (self.cooccurrence @ features))

    def values(self, maps):  # for explain: what the attention weighs
        """Return the maps themselves."""
        return maps

    def relations(self):  # for explain: which categories move each other's scores
        """Return the co-occurrence graph (C, C)."""
        return self.cooccurrence


register("network", "queries", Queries)
data = sarb.load("demo", train=64, test=32, size=64)
train = data.train.hide(known=0.3, seed=0)
small = {"backbone": "tiny", "image_size": 64, "epochs": 3, "lr_scale": {"queries": 0.1}, "resume": True}
model = sarb.fit(train, network="queries", method="sarb", out="runs/example-network", **small)
print(sarb.explain(model, data.test.paths[0], ["tree", "cloud"]))
print(sarb.export(model, "runs/example-network/model.onnx", progress=False))
