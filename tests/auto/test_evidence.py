"""Concept Bayes and name evidence."""

import numpy as np

from sarb.auto.evidence import ConceptBayes, ConceptScores, NameEvidence, concept_scores
from sarb.auto.parts import Parts
from sarb.metrics import average_precision
from tests.auto.made import made


def test_names_rank_the_images_and_no_tie_is_no_evidence():
    _, _, full, concepts, ties = made()
    ties = ties.copy()
    ties[1] = False
    evidence = NameEvidence.fit(concepts, ties)(concepts)
    assert (evidence[:, 1] == 0).all()
    found = average_precision(evidence, full)
    assert (found[[0, 2, 3]] > found[1] + 0.2).all()
    np.testing.assert_allclose(evidence[:, 0].mean(), 0, atol=1e-9)


def test_leaving_one_out_is_fitting_without_it():
    _, labels, _, concepts, _ = made()
    parts = Parts.of(labels, 3)
    _, evidence = ConceptBayes.fit(concepts, parts)
    row = int(np.flatnonzero(labels.values[:, 0] > 0)[0])
    q = concepts.whole.astype(np.float64)
    mean = q.mean(0) + 1e-9
    others = np.flatnonzero(labels.values[:, 0] > 0)
    plain = (q[others].sum(0) + 10 * mean) / (len(others) + 10) / mean
    others = others[others != row]
    without = (q[others].sum(0) + 10 * mean) / (len(others) + 10) / mean
    logs = np.log(q @ plain + 1e-3)
    expected = (np.log(q[row] @ without + 1e-3) - logs.mean()) / logs.std()
    np.testing.assert_allclose(evidence[-1, row, 0], expected, atol=1e-9)


def test_a_category_without_positives_has_no_concept_evidence():
    _, labels, _, concepts, _ = made()
    values = labels.values.copy()
    values[:, 2] = np.minimum(values[:, 2], 0)
    parts = Parts(values, Parts.of(labels, 3).numbers, 3)
    bayes, evidence = ConceptBayes.fit(concepts, parts)
    np.testing.assert_allclose(evidence[:, :, 2], 0, atol=1e-6)
    np.testing.assert_allclose(bayes(concepts)[:, 2], 0, atol=1e-6)


def test_concept_scores_of_maps():
    random = np.random.RandomState(0)
    maps = random.rand(3, 5, 2, 2).astype(np.float32)
    found = concept_scores(maps, random.randn(7, 5), random.randn(7))
    assert isinstance(found, ConceptScores)
    for share in (found.whole, found.average):
        np.testing.assert_allclose(share.sum(1), 1, rtol=1e-5)
    assert (found.largest >= found.average).all()
