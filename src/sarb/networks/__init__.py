"""Networks: images -> maps (B, D, H, W) -> representations (B, C, D) -> logits (B, C).

base          the three stages, and what other modules ask a network
ssgrl         SSGRL, the paper's network
kggr          SSGRL with a second graph over the classifiers
gcn_ml        a graph convolution over word vectors
probe         the fitted ladder of method auto, as a network
on_top        a network that learns what a fitted model leaves over
pooled        global average pooling and one linear layer
decouple      SD, a representation per category by word-guided attention
scores        the scores of SD, in blocks
attention     SAM, a representation per category by masks
words         word vectors, given or learned
text          category names as vectors of a CLIP or SigLIP text encoder
graph         the gated graph
gates         its element-wise part, with a hand-written gradient
sparse_graph  a sparse graph for thousands of categories
classifier    the classifier on top of the graph
informed      initial weights computed from the data
branches      a shortcut that shares graph work between the branches of SARB
backbones/    image to map
"""

from sarb.networks.attention import SemanticAttention
from sarb.networks.backbones.base import Backbone, create_backbone
from sarb.networks.base import Network
from sarb.networks.classifier import CategoryLinear, ContextClassifier
from sarb.networks.decouple import SemanticDecoupling
from sarb.networks.gcn_ml import GCNML
from sarb.networks.graph import GatedGraph
from sarb.networks.kggr import KGGR
from sarb.networks.pooled import Pooled
from sarb.networks.ssgrl import SSGRL
from sarb.networks.words import CategoryWords

__all__ = [
    "GCNML",
    "KGGR",
    "SSGRL",
    "Backbone",
    "CategoryLinear",
    "CategoryWords",
    "ContextClassifier",
    "GatedGraph",
    "Network",
    "Pooled",
    "SemanticAttention",
    "SemanticDecoupling",
    "create_backbone",
]
