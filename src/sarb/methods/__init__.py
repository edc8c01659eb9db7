"""Methods: ways to train a network with partial labels.

base         what the training loop calls
sarb         SARB, the paper's method
partial_bce  the known labels only
asl          asymmetric loss
mixup        IP-Mixup and FM-Mixup
curriculum   curriculum labeling
auto         fit a ladder on frozen features instead of training step by step
strategies   which pseudo-labels curriculum labeling trusts
an           assume negative, and what the methods up to csl start from
wan          with light negatives
an_ls        with label smoothing
iu           ignore unknown
epr          the expected number of present labels
role         learned labels
ll_r         large losses are rejected
ll_ct        large losses are corrected, for a step
ll_cp        large losses are corrected, for good
hill         a loss that forgets what looks very present
splc         what looks present becomes present
csl          class-aware selective loss
transfer     semantic transfer, what sst and hst share
pairs        the head for pairs of categories
sst          structured semantic transfer
hst          heterogeneous semantic transfer
dsrb         SARB with prototypes by position
sr_st        self-training on two views
semantic     what methods on representations share
together     memories that are the same in all processes
"""

from sarb.methods.base import Method
from sarb.methods.curriculum import Curriculum
from sarb.methods.mixup import FeatureMapMixup, PixelMixup
from sarb.methods.partial_bce import PartialBCE
from sarb.methods.sarb import SARB

__all__ = ["SARB", "Curriculum", "FeatureMapMixup", "Method", "PartialBCE", "PixelMixup"]
