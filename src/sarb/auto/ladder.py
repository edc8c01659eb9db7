"""The ladder: probe, concept Bayes, name evidence, neighbours; a rung stays if known held-out entries gain.

Final logits of an image with pooled vector p, concept probabilities q and features x:

    s_c = w_c·x + b_c + α_c · bayes_c(q) + β_c · name_c(q) + γ_c · neighbours_c(x)

Every number in it is fitted, or chosen, on known entries: λ, the weights α, β, γ of each category (shrunk to a
shared one, 0 allowed) and whether a rung is used at all. ``claims`` says what may be used: ``"strict"`` only
images and known labels, ``"no-names"`` also the pretrained classifier, ``"names"`` also category names.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.auto.evidence import ConceptBayes, ConceptScores, NameEvidence
from sarb.auto.features import WIDTH, Projection, fit_projection
from sarb.auto.judge import Judge
from sarb.auto.neighbours import BANK, COUNT, bank_labels, bank_rows, nearest
from sarb.auto.parts import Floats, Mask, Parts
from sarb.auto.probe import RIDGES, Linear, Setting, compare, fit_linear
from sarb.auto.rung import BASELINE, Rung, over_rates
from sarb.auto.solver import sigmoid
from sarb.errors import check_choice
from sarb.labels import LabelMatrix
from sarb.progress import Advance

CLAIMS = ("strict", "no-names", "names")
#: rungs after the probe, in the order in which they are tried; ``ridge`` chooses λ again
RUNGS = ("names", "bayes", "ridge", "student", "neighbours")
#: weights of each evidence that are compared; concept Bayes with a large one over-fits where labels are few
WEIGHTS = {"names": (0.0, 0.2, 0.4, 0.6, 0.9, 1.2), "bayes": (0.0, 0.1, 0.2, 0.3, 0.45, 0.6)}
#: weights of the neighbours that are compared
NEIGHBOUR_WEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5)
#: the shrinkage with which all categories take one weight of the neighbours
SHARED = 1e6
#: share of the expected unknown positives that the student takes for positives
SUREST = 0.5


@dataclass(frozen=True)
class Ladder:
    """A fitted ladder.

    Args:
        claims: what it was allowed to use.
        ridge: λ.
        projection: pooled vectors to features.
        weight: (C, d) of the linear part.
        bias: (C,).
        bayes: concept Bayes; its weight is 0 where the rung is off.
        bayes_weight: (C,) α.
        names: name evidence.
        name_weight: (C,) β.
        bank: (M, d) unit vectors of the training images; (0, d) without neighbours.
        bank_labels: (M, C) in [0, 1].
        neighbours: how many neighbours count.
        neighbour_weight: (C,) γ.
        out_of_fold: (N, C) logits of the training images, each entry by the model that has not seen it.
        rungs: what was tried.
    """

    claims: str
    ridge: float
    projection: Projection
    weight: Floats
    bias: Floats
    bayes: ConceptBayes | None
    bayes_weight: Floats
    names: NameEvidence | None
    name_weight: Floats
    bank: Floats
    bank_labels: Floats
    neighbours: int
    neighbour_weight: Floats
    out_of_fold: Floats
    rungs: tuple[Rung, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of ``log.csv``."""
        baseline = next((rung for rung in self.rungs if rung.name == BASELINE), None)
        return [rung.row(None if rung is baseline else baseline) for rung in self.rungs]

    def __call__(self, pooled: NDArray[np.floating], concepts: ConceptScores | None = None) -> Floats:
        """Logits (N, C) of new images from pooled vectors (N, D) and concept probabilities."""
        x = self.projection(pooled)
        scores: Floats = x @ self.weight.T + self.bias
        if self.bayes is not None and concepts is not None:
            scores = scores + self.bayes_weight * self.bayes(concepts)
        if self.names is not None and concepts is not None:
            scores = scores + self.name_weight * self.names(concepts)
        if len(self.bank):
            found = nearest(self.projection.directions(x), self.bank, count=self.neighbours)
            scores = scores + self.neighbour_weight * found.evidence(self.bank_labels)
        return scores


@dataclass
class _State:
    """The ladder while it is built; scores and offsets are of all F + 1 models (F + 1, N, C)."""

    features: Floats
    parts: Parts
    judge: Judge
    ridge: float
    linear: Linear
    scores: Floats
    force: bool = False
    offsets: Floats | None = None
    weights: dict[str, Floats] = field(default_factory=dict)
    rungs: list[Rung] = field(default_factory=list)
    advance: Advance | None = None

    def tell(self) -> None:
        """Report one more rung as fitted."""
        if self.advance is not None:
            self.advance(1, self.rungs[-1].name)

    @property
    def held_out(self) -> Floats:
        return self.parts.held_out(self.scores)

    @property
    def tempered(self) -> Floats:
        slope, shift = self.judge.temper(self.held_out)
        return slope * self.scores + shift

    def offer(self, name: str, changed: _State, weight: float, started: float, errors: float = 0.0) -> _State:
        """Keep a rung if the loss of held-out known entries falls, or if forced; the record has it in any case.

        ``errors``: by how many standard errors it must fall.
        """
        after = changed.held_out
        gain = self.judge.gain(self.held_out, after)
        kept = self.force or gain.mean > errors * gain.error
        rung = Rung.of(name, kept, self.judge, after, gain, weight, started)
        state = replace(changed if kept else self, rungs=[*self.rungs, rung])
        state.tell()
        return state


def fit_ladder(
    pooled: NDArray[np.floating],
    labels: LabelMatrix,
    concepts: ConceptScores | None = None,
    ties: NDArray[np.bool_] | None = None,
    *,
    claims: str = "names",
    folds: int = 5,
    seed: int = 0,
    width: int = WIDTH,
    ridges: Sequence[float] = RIDGES,
    neighbours: int = COUNT,
    bank: int = BANK,
    rungs: Collection[str] | None = None,
    force: bool = False,
    judged: Mask | None = None,
    advance: Advance | None = None,
) -> Ladder:
    """Fit the ladder to N training images.

    Args:
        pooled: (N, D) averaged maps; several resolutions side by side.
        labels: (N, C) known and unknown labels.
        concepts: probabilities of the backbone's own classifier, None where it has none.
        ties: (C, K) which concepts belong to each category's name; a row of zeros is no tie.
        claims: ``"strict"``, ``"no-names"`` or ``"names"``.
        folds: parts of the known entries.
        seed: of the parts.
        width: features after PCA.
        ridges: values of λ to compare.
        neighbours: how many neighbours count, 0 for no such rung.
        bank: at most this many training images are kept to look for neighbours.
        rungs: of :data:`RUNGS`, those that may be tried after the probe; None for all that the claims allow.
        force: use every rung that is tried, also one that does not help.
        judged: (N,) images whose known entries choose and judge; None for all. For features that have seen the
            labels of the others.
        advance: told about each rung that was fitted.
    """
    allowed = _allowed(claims, rungs)
    projection = fit_projection(pooled, width)
    state = _probe(projection(pooled), Parts.of(labels, folds, seed), ridges, judged)
    state = replace(state, force=force, advance=advance)
    state.tell()
    bayes = None
    names = None
    if concepts is not None:
        state, bayes, names = _with_concepts(state, concepts, ties, allowed)
    if "ridge" in allowed:
        state = _ridge(state, ridges)
    if "student" in allowed:
        state = _student(state)
    kept = bank_rows(len(pooled), bank)
    units = projection.directions(state.features)
    learned = state
    if "neighbours" in allowed and neighbours > 0 and len(kept) > 2:
        state = _neighbours(state, units, kept, neighbours)
    return _finished(state, learned, claims, projection, bayes, names, units[kept], kept, neighbours)


def _allowed(claims: str, rungs: Collection[str] | None) -> set[str]:
    """Rungs that may be tried: those asked for, without those that use more than the claims allow."""
    check_choice("claims", claims, CLAIMS)
    for rung in rungs or ():
        check_choice("rung", rung, RUNGS)
    barred = {"strict": {"names", "bayes"}, "no-names": {"names"}, "names": set[str]()}[claims]
    return set(RUNGS if rungs is None else rungs) - barred


def _probe(features: Floats, parts: Parts, ridges: Sequence[float], judged: Mask | None) -> _State:
    """The first rung: λ by the loss of held-out known entries; its gain is against knowing the rates only."""
    started = time.perf_counter()
    judge = Judge.of(parts if judged is None else parts.only(judged))
    losses = [judge.loss(scores) for scores in compare(features, parts, [Setting(each) for each in ridges])]
    ridge = float(ridges[int(np.argmin(losses))])
    linear = fit_linear(features, parts, ridge)
    state = _State(features, parts, judge, ridge, linear, linear.scores(features))
    gain = over_rates(judge, state.held_out)
    return replace(state, rungs=[Rung.of("probe", True, judge, state.held_out, gain, ridge, started)])


def _with_concepts(
    state: _State, concepts: ConceptScores, ties: NDArray[np.bool_] | None, allowed: set[str]
) -> tuple[_State, ConceptBayes | None, NameEvidence | None]:
    """The rungs ``names`` and ``bayes``, where they are allowed."""
    bayes = None
    names = None
    if "names" in allowed and ties is not None and np.any(ties):
        names = NameEvidence.fit(concepts, ties)
        state = _evidence(state, "names", np.broadcast_to(names(concepts), state.scores.shape))
    if "bayes" in allowed:
        bayes, evidence = ConceptBayes.fit(concepts, state.parts)
        state = _evidence(state, "bayes", evidence)
    return state, bayes, names


def _student(state: _State) -> _State:
    """Fit again with the surest unknown entries as positives.

    Model f expects Σ p positives among the entries of c that it has not seen; the half of that number with
    the highest scores joins its known positives. The bias is put back by what they add to the odds.
    """
    started = time.perf_counter()
    slope, shift = state.judge.temper(state.held_out)
    extra = np.zeros(state.scores.shape, bool)
    for model in state.parts.models:
        unseen = ~state.parts.seen(model)
        ranked = np.where(unseen, state.scores[model], -np.inf)
        chance = np.where(unseen, sigmoid(slope * state.scores[model] + shift), 0.0)
        number = np.floor(SUREST * chance.sum(0)).astype(np.int64)
        rank = np.argsort(np.argsort(-ranked, axis=0, kind="stable"), axis=0, kind="stable")
        extra[model] = (rank < number) & unseen
    if not extra[-1].any():  # everything is known, or nothing is expected
        return state
    linear = fit_linear(state.features, state.parts, state.ridge, state.offsets, extra)
    linear = replace(linear, bias=linear.bias - _more_positives(state.parts, extra))
    scores = linear.scores(state.features)
    if state.offsets is not None:
        scores = scores + state.offsets
    changed = replace(state, linear=linear, scores=scores)
    return state.offer("student", changed, float(extra[-1].sum(0).mean()), started)


def _ridge(state: _State, ridges: Sequence[float]) -> _State:
    """Choose λ again now that evidence explains a part: what is left usually wants a larger one.

    It must gain one standard error: with few labels, five values of λ find a gain by chance.
    """
    if state.offsets is None:
        return state
    started = time.perf_counter()
    settings = [Setting(each) for each in ridges]
    grid = compare(state.features, state.parts, settings, base=state.offsets)
    ridge = float(ridges[int(np.argmin([state.judge.loss(scores) for scores in grid]))])
    if ridge == state.ridge:
        return state
    linear = fit_linear(state.features, state.parts, ridge, state.offsets)
    changed = replace(state, ridge=ridge, linear=linear, scores=linear.scores(state.features) + state.offsets)
    return state.offer("ridge", changed, ridge, started, errors=1.0)


def _more_positives(parts: Parts, extra: Mask) -> Floats:
    """Log of the factor (F + 1, C) by which the extra positives raise the odds of a positive."""
    known = np.stack([parts.present(model).sum(0) for model in parts.models])
    factor = (known + extra.sum(1)) / np.maximum(known, 1)
    out: Floats = np.where(known > 0, np.log(np.maximum(factor, 1.0)), 0.0)
    return out


def _evidence(state: _State, name: str, evidence: Floats) -> _State:
    """Offer evidence (F + 1, N, C) as an offset of the fit, its weights chosen for each category."""
    started = time.perf_counter()
    settings = [Setting(state.ridge, weight) for weight in WEIGHTS[name]]
    grid = compare(state.features, state.parts, settings, evidence, state.offsets)
    weights = state.judge.choose(grid, np.array(WEIGHTS[name]))
    offsets = weights[:, None] * evidence
    if state.offsets is not None:
        offsets = offsets + state.offsets
    linear = fit_linear(state.features, state.parts, state.ridge, offsets)
    changed = replace(
        state,
        linear=linear,
        scores=linear.scores(state.features) + offsets,
        offsets=offsets,
        weights={**state.weights, name: weights},
    )
    return state.offer(name, changed, float(weights[-1].mean()), started)


def _neighbours(state: _State, units: Floats, kept: NDArray[np.int64], count: int) -> _State:
    """Offer the labels of the nearest training images, added to the tempered scores."""
    started = time.perf_counter()
    own = np.full(len(units), -1)
    own[kept] = np.arange(len(kept))
    found = nearest(units, units[kept], own, count)
    tempered = state.tempered
    evidence = np.stack(
        [found.evidence(bank_labels(state.parts, tempered, model)[kept]) for model in state.parts.models]
    )
    grid = np.stack([state.parts.held_out(tempered + weight * evidence) for weight in NEIGHBOUR_WEIGHTS])
    weights = state.judge.choose(grid, np.array(NEIGHBOUR_WEIGHTS), SHARED)
    changed = replace(
        state,
        scores=tempered + weights[:, None] * evidence,
        weights={**state.weights, "neighbours": weights},
    )
    return state.offer("neighbours", changed, float(weights[-1].mean()), started)


def _finished(
    state: _State,
    learned: _State,
    claims: str,
    projection: Projection,
    bayes: ConceptBayes | None,
    names: NameEvidence | None,
    bank: Floats,
    kept: NDArray[np.int64],
    neighbours: int,
) -> Ladder:
    """Fold the scales into the coefficients of the last model."""
    parts = state.parts
    outer, outer_shift = state.judge.temper(state.held_out)
    uses_bank = "neighbours" in state.weights
    inner, inner_shift = learned.judge.temper(learned.held_out)
    if not uses_bank:
        inner = 1.0
        inner_shift = np.zeros_like(outer_shift)
    slope = outer * inner
    zeros = np.zeros(parts.values.shape[1])

    def final(name: str, factor: float) -> Floats:
        weights = state.weights.get(name)
        return zeros if weights is None else factor * weights[-1]

    votes = final("neighbours", outer)
    labels = bank_labels(parts, learned.tempered, parts.count)[kept]
    return Ladder(
        claims=claims,
        ridge=state.ridge,
        projection=projection,
        weight=slope * state.linear.weight[-1],
        bias=slope * state.linear.bias[-1] + outer * inner_shift + outer_shift,
        bayes=bayes if "bayes" in state.weights else None,
        bayes_weight=final("bayes", slope),
        names=names if "names" in state.weights else None,
        name_weight=final("names", slope),
        # the model of all entries may give the neighbours no weight; then it keeps no training images
        bank=bank if votes.any() else bank[:0],
        bank_labels=labels if votes.any() else labels[:0],
        neighbours=max(1, min(neighbours, len(bank) - 2)) if votes.any() else 0,
        neighbour_weight=votes,
        out_of_fold=outer * state.held_out + outer_shift,
        rungs=tuple(state.rungs),
    )
