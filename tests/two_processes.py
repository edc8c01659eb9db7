"""How tests start ``sarb`` in two processes, as a user does with torchrun."""

import sys

SARB = [
    *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
    *("-m", "sarb.cli"),
]
