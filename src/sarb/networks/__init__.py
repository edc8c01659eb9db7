"""Networks: images to maps to representations to logits."""

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
