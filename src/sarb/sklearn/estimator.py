"""SarbClassifier: ``fit``, ``predict`` and ``score`` as in scikit-learn."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sarb.data.dataset import Dataset
from sarb.errors import ConfigError
from sarb.labelling.calibration import Calibration, calibrate
from sarb.metrics import average_precision
from sarb.runs.folder import CONFIG, WEIGHTS, RunFolder
from sarb.scores import Scores
from sarb.sklearn.inputs import InputError, labelled, pictures

if TYPE_CHECKING:
    from sarb.model import Model

#: model files that a pickle keeps; reading them runs no code
PICKLED = (WEIGHTS, CONFIG)


class SarbClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multi-label image classifier that learns from partial labels.

    X is a list or array of N images: paths, Pillow images, or uint8 arrays (H, W, 3). y (N, C) has present,
    absent or unknown labels: a :class:`sarb.LabelMatrix`, booleans, or codes with an ``encoding``. Images in
    memory are used directly; only the feature cache is written to disk, as for files.

    Args:
        method: a key of ``sarb.METHODS``; None uses the recipe's. With no method, network or recipe given,
            it is ``auto``, which fits simple models on frozen features.
        network: a key of ``sarb.NETWORKS``; None uses the recipe's, or the one that the method needs.
        backbone: a key of ``sarb.BACKBONES``; None uses the recipe's, also for the parameters below.
        epochs: number of passes over the training images; ``auto`` uses it for residual and finetune only.
        batch_size: images per step.
        lr: learning rate; the same applies to ``auto``.
        image_size: side of the network's input in pixels.
        recipe: name or file of a recipe; None uses ``auto``. If another method or network is given, it uses
            ``gpu`` with a GPU and ``small`` without one.
        method_options: keyword arguments for the method, e.g. ``{"claims": "strict"}``.
        network_options: keyword arguments for the network, e.g. ``{"csrl": "sam"}`` for ``ssgrl``.
        backbone_options: keyword arguments for the backbone, e.g. ``{"train_stages": 1}``.
        words: file of word vectors in GloVe format.
        options: any other setting of :class:`sarb.settings.Settings`, e.g. ``{"schedule": "cosine"}``.
        encoding: codes in y for present/absent/unknown: ``signed`` 1/-1/0, ``binary`` 1/0/NaN,
            ``minus_one_unknown`` 1/0/-1. There is no default, because 0 and -1 mean different things in
            different data sets.
        categories: C names, if y has no names.
        valid: share of the training images to hold out; their known labels calibrate the probabilities.
        random_state: seed, or a NumPy RandomState to draw the seed from; None uses the recipe's seed, which
            is always the same.
        out: run folder to write, for a single fit; None writes no run folder.
        verbose: show progress on stderr.

    Attributes:
        model_: the trained :class:`sarb.Model`.
        classes_: (C,) category names, in the order of the columns of all results.
        calibration_: the :class:`sarb.Calibration` fitted to the held-out labels; None without ``valid``.

    >>> SarbClassifier(epochs=2, encoding="binary").get_params()["epochs"]
    2
    """

    model_: Model
    classes_: NDArray[np.str_]
    calibration_: Calibration | None

    def __init__(
        self,
        method: str | None = None,
        network: str | None = None,
        *,
        backbone: str | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        image_size: int | None = None,
        recipe: str | Path | None = None,
        method_options: Mapping[str, Any] | None = None,
        network_options: Mapping[str, Any] | None = None,
        backbone_options: Mapping[str, Any] | None = None,
        words: str | Path | None = None,
        options: Mapping[str, Any] | None = None,
        encoding: str | None = None,
        categories: Sequence[str] | None = None,
        valid: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        out: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.network = network
        self.backbone = backbone
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.image_size = image_size
        self.recipe = recipe
        self.method_options = method_options
        self.network_options = network_options
        self.backbone_options = backbone_options
        self.words = words
        self.options = options
        self.encoding = encoding
        self.categories = categories
        self.valid = valid
        self.random_state = random_state
        self.out = out
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> SarbClassifier:
        """Train on N images X and labels y (N, C).

        Unreadable files are skipped if they are at most 1 %, as in :func:`sarb.fit`.
        """
        from sarb.training.run import fit

        train = labelled(X, y, self.encoding, self.categories)
        if self.categories is not None and train.categories != tuple(map(str, self.categories)):
            raise InputError(
                f"y has the categories {train.categories}, but categories= has {self.categories}"
            )
        seed = self._seed()
        held_out = None
        if self.valid is not None:
            train, held_out = train.split(self.valid, seed or 0)
        self.model_ = fit(train, valid=held_out, seed=seed, progress=self.verbose, **self._settings())
        self.classes_ = np.array(train.categories)
        self.calibration_ = None if held_out is None else self._calibrate(held_out)
        return self

    def _settings(self) -> dict[str, Any]:
        """Keyword arguments for :func:`sarb.fit`, except those that :meth:`fit` sets itself."""
        parameters = self.get_params(deep=False)
        options = dict(self.options or {})
        parameter_of = {name: name for name in parameters} | {"seed": "random_state", "progress": "verbose"}
        if twice := [name for name in options if name in parameter_of]:
            raise ConfigError(
                [f"options: '{name}' is a parameter; pass {parameter_of[name]}= instead" for name in twice]
            )
        different = ("options", "encoding", "categories", "valid", "random_state", "verbose")
        return options | {name: value for name, value in parameters.items() if name not in different}

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _calibrate(self, held_out: Dataset) -> Calibration | None:
        """Calibrate on the known labels of the held-out images, and save the result in the run folder."""
        labels = held_out.labels
        if not (labels.positives.sum() and labels.negatives.sum()):
            warnings.warn(
                f"valid={self.valid}: calibration needs known present and known absent labels, and the "
                f"{len(held_out)} held-out images do not have both; the probabilities stay uncalibrated",
                stacklevel=3,
            )
            return None
        calibration = calibrate(self._scores(held_out), labels, source="known labels of the images held out")
        if self.out is not None:
            RunFolder(self.out).write_calibration(calibration)
        return calibration

    def _scores(self, images: Any) -> Scores:
        from sarb.inference.prediction import predict

        return predict(self.model_, images)

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return the network's logits (N, C); raise an error if an image cannot be read."""
        check_is_fitted(self, "model_")
        return self._scores(pictures(X)).logits.copy()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability (N, C) that each category is present, calibrated if ``valid`` was set."""
        check_is_fitted(self, "model_")
        scores = self._scores(pictures(X))
        return scores.probabilities if self.calibration_ is None else self.calibration_(scores)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 (present) or 0 (absent), (N, C): probability at least 0.5 or the calibrated threshold."""
        probabilities = self.predict_proba(X)
        if self.calibration_ is None:
            return (probabilities >= 0.5).astype(np.int64)
        thresholds = self.calibration_.ordered(self.classes_.tolist()).thresholds
        return (probabilities >= thresholds).astype(np.int64)

    def score(self, X: Any, y: Any) -> float:
        """Return the mean average precision over the **known** entries of y (N, C), from 0 to 1.

        Unknown entries are ignored. Categories without a known positive are left out of the mean; if none is
        left, the score is nan. Named columns are matched by name. ``sarb.evaluate`` gives the same number as
        a percentage, ``mAP``.
        """
        from sarb.inference.prediction import match_categories

        check_is_fitted(self, "model_")
        data = match_categories(self.model_, labelled(X, y, self.encoding, self.classes_.tolist()))
        precisions = average_precision(self._scores(data).logits, data.labels)
        if np.isnan(precisions).all():
            warnings.warn(
                "no category has a known positive: the score is nan", UndefinedMetricWarning, stacklevel=2
            )
            return float("nan")
        return float(np.nanmean(precisions))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Store the model as the bytes of its model folder, which other versions of torch can read."""
        state = dict(super().__getstate__())
        if "model_" in state:
            model = state["model_"]
            home = model.folder
            with tempfile.TemporaryDirectory() as temporary:
                folder = model.save(Path(temporary) / "model")
                state["model_"] = {name: (folder / name).read_bytes() for name in PICKLED}
            model.folder = home  # `save` has set it to the temporary one
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            from sarb.model import Model

            with tempfile.TemporaryDirectory() as temporary:
                for name in PICKLED:
                    (Path(temporary) / name).write_bytes(state["model_"][name])
                state = {**state, "model_": Model.load(temporary)}
            state["model_"].folder = None  # the temporary one is gone
        super().__setstate__(state)
