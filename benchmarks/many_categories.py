"""One training step of SARB's head with very many categories: seconds and peak resident memory.

    python benchmarks/many_categories.py --categories 10000 --csrl sd

B=8, D=256, 7×7, 10 % known; plain, ILRB, PLRB and contrastive terms, backward and Adam. The backbone is the tiny one.
"""

import argparse
import resource
import time

import torch

from sarb.loader import Batch
from sarb.methods.sarb import SARB
from sarb.networks import SSGRL, create_backbone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--categories", type=int, default=10_000)
    parser.add_argument("--csrl", choices=("sd", "sam"), default="sd")
    parser.add_argument("--batch", type=int, default=8)
    given = parser.parse_args()
    torch.manual_seed(0)
    graph = torch.rand(given.categories, given.categories) < 0.001
    network = SSGRL(
        create_backbone("tiny"), given.categories, graph.float(), csrl=given.csrl, dim=256, hidden=256, grid=7
    )
    method = SARB(network, start=0, contrastive=0.05)
    known = torch.rand(given.batch, given.categories) < 0.1
    labels = (torch.where(torch.rand(known.shape) < 0.05, 1, -1) * known).to(torch.int8)
    batch = Batch(torch.rand(given.batch, 3, 224, 224), labels, torch.arange(given.batch))
    method.epochs = 2
    method.begin_epoch(0, lambda: [batch])
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-4)
    started = time.perf_counter()
    terms = method(batch)
    sum(terms.values()).backward()
    optimizer.step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    grid = network.maps(batch.images[:1]).shape[-1]
    print(f"{given.csrl}, C={given.categories:,}, B={given.batch}, D=256, {grid}×{grid}:", end=" ")
    print(f"{time.perf_counter() - started:.1f} s, peak {peak:.1f} GB, terms {' '.join(terms)}")


if __name__ == "__main__":
    main()
