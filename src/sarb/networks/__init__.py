"""Networks: images to maps to representations to logits.

base          the three stages, and what the rest of the package asks a network about itself
ssgrl         SSGRL, the paper's network
pooled        the plain baseline: average the grid, one linear layer
gcn_ml        GCN-ML: classifiers made from word vectors by a graph convolution
kggr          KGGR: SSGRL with a second graph, over the classifiers
backbones/    image to map
decouple      SD: semantic decoupling
scores        the scores of SD, in blocks that stay small
attention     SAM: semantic attention
words         word vectors of the categories
graph         the gated graph
gates         one step of it, with its gradient written out
sparse_graph  the graph of thousands of categories
classifier    φ, the classifier of a category
branches      the shortcut that classifies all branches of SARB at once
informed      where a small head starts, if not at random
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
