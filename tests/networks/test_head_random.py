"""The whole head with its three branches on random shapes, against the equations classified branch by
branch.
"""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sarb.batches.loader import Batch
from sarb.methods.sarb import SARB
from sarb.networks import SSGRL, create_backbone

#: shares of absent, unknown and present labels
MIXES = {
    "all unknown": (0.0, 1.0, 0.0),
    "all known": (0.6, 0.0, 0.4),
    "all absent": (1.0, 0.0, 0.0),
    "few known": (0.1, 0.7, 0.2),
    "half known": (0.2, 0.5, 0.3),
}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


class Head(SSGRL):
    """SSGRL that takes maps (B, D, H, W) for images."""

    def from_frozen(self, activations):
        return activations


def build(sizes, csrl, steps, per_category, detach, form, dtype):
    """SARB with random weights, coefficients and prototypes; some categories have none."""
    _, categories, dim, _, _ = sizes
    network = Head(
        create_backbone("tiny"),
        categories,
        torch.rand(categories, categories),
        csrl=csrl,
        dim=dim,
        hidden=5,
        word_dim=4,
        steps=steps,
    )
    method = SARB(
        network, prototypes=3, per_category=per_category, detach_label=detach, contrastive=0, form=form
    ).to(dtype)
    with torch.no_grad():
        for coefficient in (method.ilrb.alpha, method.plrb.beta):
            coefficient.uniform_(0.1, 0.9)
        method.plrb.centers.normal_()
        method.plrb.counts.random_(0, 4)
    method.completing = True
    return method.train()


# the equations, one image, one category, one branch at a time


def represent(network, maps):
    """f_nc of SD: softmax over the grid of w4 · W3 tanh(W1 x ⊙ W2 w); of SAM: Σ σ(W_m x)_c W_t x."""
    batch, rows = len(maps), []
    for n in range(batch):
        cells = maps[n].flatten(1).T  # (P, D)
        for c in range(network.categories):
            if network.sam is not None:
                masks = torch.sigmoid(cells @ network.sam.mask.weight[c, :, 0, 0])
                moved = cells @ network.sam.transform.weight[:, :, 0, 0].T + network.sam.transform.bias
                rows.append(sum(mask * cell for mask, cell in zip(masks, moved, strict=True)))
            else:
                word = network.sd.word.weight @ network.words()[c]
                joint = [torch.tanh((network.sd.image.weight @ cell) * word) for cell in cells]
                scores = torch.stack(
                    [network.sd.score.weight[0] @ (network.sd.joint.weight @ each) for each in joint]
                )
                share = scores.exp() / scores.exp().sum()
                rows.append(sum(weight * cell for weight, cell in zip(share, cells, strict=True)))
    return torch.stack(rows).view(batch, network.categories, -1)


def gated(module, graph, states):
    """States (C, D) of one image through the T steps, gate by gate."""
    for _ in range(module.steps):
        message = torch.cat([graph @ states, graph.T @ states], 1)
        z = torch.sigmoid(
            message @ module.message_update.weight.T
            + module.message_update.bias
            + states @ module.state_update.weight.T
        )
        r = torch.sigmoid(
            message @ module.message_reset.weight.T
            + module.message_reset.bias
            + states @ module.state_reset.weight.T
        )
        candidate = torch.tanh(
            message @ module.message_candidate.weight.T
            + module.message_candidate.bias
            + (r * states) @ module.state_candidate.weight.T
        )
        states = (1 - z) * states + z * candidate
    return states


def classify(network, reps):
    """Logits (B, C): φ([h_T, f]) of every image by itself."""
    phi, rows = network.classifier, []
    for own in reps:
        joined = torch.cat([gated(network.graph, network.cooccurrence, own), own], 1)
        hidden = torch.tanh(joined @ phi.join.weight.T + phi.join.bias)
        rows.append((hidden * phi.category.weight).sum(1) + phi.category.bias)
    return torch.stack(rows)


def entropy(logits, values, form):
    """−[t log σ + (1 − t) log(1 − σ)] of the entries that have a value, in the chosen mean; 0 without any."""
    images = []
    for row, given_values in zip(logits, values, strict=True):
        images.append(
            [
                -(t * torch.sigmoid(x).log() + (1 - t) * torch.sigmoid(-x).log())
                for x, t in zip(row, given_values, strict=True)
                if t is not None
            ]
        )
    if form == "image":
        return sum((sum(image) / len(image) for image in images if image), logits.sum() * 0)
    everything = [loss for image in images for loss in image]
    return sum(everything, logits.sum() * 0) / max(1, len(everything))


def literal(method, maps, labels):
    """{"cls", "ilrb", "plrb"} with the method's own draws, each branch through the classifier by itself."""
    network, detach = method.network, method.ilrb.detach_label
    (batch, categories), reps = labels.shape, represent(network, maps)
    codes = labels.tolist()
    plain = [[None if code == 0 else float(code == 1) for code in row] for row in codes]
    order = torch.randperm(batch).tolist()
    lots, shares = torch.rand(batch, categories), torch.rand(batch)
    alpha, beta = (c.expand(categories) for c in (method.ilrb.alpha, method.plrb.beta))
    terms = {"cls": entropy(classify(network, reps), plain, method.form)}
    branches = {
        name: ([list(row) for row in reps], [list(row) for row in plain]) for name in ("ilrb", "plrb")
    }
    for place, n in enumerate(order):
        m = order[place - 1]
        for c in range(categories):
            if codes[n][c] == 0 and codes[m][c] == 1:
                branches["ilrb"][0][n][c] = alpha[c] * reps[n, c] + (1 - alpha[c]) * reps[m, c]
                branches["ilrb"][1][n][c] = 1 - (alpha[c].detach() if detach else alpha[c])
        possible = [c for c in range(categories) if codes[n][c] == 0 and method.plrb.counts[c] > 0]
        if possible:
            c = max(possible, key=lambda c: float(lots[n, c]))
            prototype = method.plrb.centers[c, int(shares[n] * method.plrb.counts[c])]
            branches["plrb"][0][n][c] = beta[c] * reps[n, c] + (1 - beta[c]) * prototype
            branches["plrb"][1][n][c] = 1 - (beta[c].detach() if detach else beta[c])
    for name, (blended, values) in branches.items():
        copy = torch.stack([torch.stack(row) for row in blended])
        terms[name] = entropy(classify(network, copy), values, method.form)
    return terms


def slopes(term, maps, parameters):
    return [
        torch.zeros_like(tensor) if slope is None else slope
        for tensor, slope in zip(
            (maps, *parameters),
            torch.autograd.grad(term, (maps, *parameters), allow_unused=True, retain_graph=True),
            strict=True,
        )
    ]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*(st.integers(1, most) for most in (5, 6, 8, 4, 4))),
    mix=st.sampled_from(sorted(MIXES)),
    csrl=st.sampled_from(["sd", "sam"]),
    steps=st.integers(1, 3),
    per_category=st.booleans(),
    detach=st.booleans(),
    form=st.sampled_from(["batch", "image"]),
    dtype=st.sampled_from(sorted(TOLERANCE, key=str)),
    seed=st.integers(0, 10**6),
)
def test_terms_and_gradients_equal_the_branches_one_by_one(
    sizes, mix, csrl, steps, per_category, detach, form, dtype, seed
):
    torch.manual_seed(seed)
    batch, categories, dim, height, width = sizes
    method = build(sizes, csrl, steps, per_category, detach, form, dtype)
    maps = torch.randn(batch, dim, height, width, dtype=dtype, requires_grad=True)
    labels = torch.multinomial(torch.tensor(MIXES[mix]), batch * categories, replacement=True) - 1
    labels = labels.view(batch, categories).to(dtype)  # labels of a floating type make targets of that type
    torch.manual_seed(seed)
    ours = method(Batch(maps, labels, torch.arange(batch), frozen=True))
    torch.manual_seed(seed)
    theirs = literal(method, maps, labels)
    assert ours.keys() == theirs.keys()
    parameters = [parameter for parameter in method.parameters() if parameter.requires_grad]
    for name, expected in theirs.items():
        assert torch.allclose(ours[name], expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]), name
        wanted, found = slopes(expected, maps, parameters), slopes(ours[name], maps, parameters)
        # of the largest gradient: that of a softmax over a grid of one cell is rounding alone
        allowed = TOLERANCE[dtype] * max(1.0, *(float(slope.abs().max()) for slope in wanted))
        assert all((one - other).abs().max() <= allowed for one, other in zip(found, wanted, strict=True)), (
            name
        )


def test_the_mixes_reach_every_path():
    """Blended rows of some, of all and of no image occur, so the cheap ways through the head are all
    taken.
    """
    seen = set()
    for seed in range(40):
        torch.manual_seed(seed)
        method = build((4, 5, 6, 2, 2), "sam", 2, False, False, "batch", torch.float64)
        labels = torch.multinomial(torch.tensor(MIXES["half known"]), 20, replacement=True).view(4, 5) - 1
        method(Batch(torch.randn(4, 6, 2, 2).double(), labels, torch.arange(4), frozen=True))
        seen |= {(name, int(getattr(method, name).chosen.any(1).sum())) for name in ("ilrb", "plrb")}
    assert {("ilrb", 2), ("ilrb", 4), ("plrb", 3), ("plrb", 4)} <= seen
