"""The contract: what must hold for every network × method."""

import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sarb
from sarb.batches.loader import Batch
from sarb.errors import StageError
from sarb.labels import LabelMatrix, Targets
from sarb.methods.base import Method
from sarb.model import build_network
from sarb.registry import METHODS, NETWORKS, find

C, SIZE = 4, 64
#: what is built of each network; SSGRL in both its forms
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in NETWORKS},
    "ssgrl": ("ssgrl", {"dim": 16, "hidden": 8, "csrl": "sd"}),
    "ssgrl-sam": ("ssgrl", {"dim": 16, "csrl": "sam"}),
    "gcn_ml": ("gcn_ml", {"hidden": 16, "word_dim": 8}),
    "kggr": ("kggr", {"dim": 16, "csrl": "sam"}),
}
#: options that suit the size of these tests, for methods whose defaults do not
METHOD_OPTIONS: dict[str, dict[str, Any]] = {
    "sarb": {"start": 1, "refresh": 1, "prototypes": 3},
    "curriculum": {"rounds": 2, "threshold": 0.1},
    "sst": {"start": 1, "fall": 2, "bank": 5, "width": 8},
    "hst": {"start": 1, "refresh": 1, "prototypes": 3, "width": 8},
    "dsrb": {"start": 1, "refresh": 1},
}
TRAINING: dict[str, Any] = {
    "recipe": "small",
    "backbone": "tiny",
    "image_size": 64,
    "batch_size": 8,
    "lr": 2e-3,
    "seed": 1,
    "progress": False,
}
PAIRS = [(variant, method) for variant in VARIANTS for method in METHODS]


def possible(network: str, method: str) -> bool:
    needs: frozenset[str] = find("method", METHODS, method).needs
    return needs <= find("network", NETWORKS, VARIANTS[network][0]).stages


def fitted(method: str) -> bool:
    """Methods without steps have a contract of their own, ``test_fitted.py``."""
    return bool(find("method", METHODS, method).fitted)


POSSIBLE = [pair for pair in PAIRS if possible(*pair) and not fitted(pair[1])]
IMPOSSIBLE = [pair for pair in PAIRS if not possible(*pair)]


def make(network: str, method: str, categories: int = C) -> Method:
    torch.manual_seed(0)
    name, options = VARIANTS[network]
    made = build_network(categories, network=name, backbone="tiny", network_options=options, weights=None)
    built: Method = find("method", METHODS, method)(made, **METHOD_OPTIONS.get(method, {}))
    return built


def make_batch(labels: torch.Tensor, seed: int = 0) -> Batch:
    torch.manual_seed(seed)
    views = [torch.rand(len(labels), 3, SIZE, SIZE) for _ in range(2)]
    return Batch(views[0], labels, torch.arange(len(labels)), (views[1],))


def random_labels(size: int = 6, categories: int = C) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(-1, 2, (size, categories)).astype(np.int8))


def start_blending(method: Method, batch: Batch, epoch: int = 1) -> None:
    method.prepare(LabelMatrix(batch.labels.numpy(), [str(c) for c in range(batch.labels.shape[1])]))
    method.begin_epoch(epoch, lambda: [batch])
    method.begin_step(epoch + 0.5)
    method.train()


def test_every_network_and_an_impossible_pair_are_covered() -> None:
    assert {name for name, _ in VARIANTS.values()} == set(NETWORKS)
    assert set(METHOD_OPTIONS) <= set(METHODS)
    assert ("pooled", "sarb") in IMPOSSIBLE


@pytest.mark.parametrize(("network", "method"), IMPOSSIBLE)
def test_impossible_pair_is_one_clear_error(network: str, method: str) -> None:
    with pytest.raises(StageError, match=r"needs stage '(represent|classify|fit)'.*; choose ") as caught:
        make(network, method)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("network", "method"), POSSIBLE)
class TestPair:
    def test_shapes_and_named_scalar_terms(self, network: str, method: str) -> None:
        built = make(network, method)
        batch = make_batch(random_labels())
        start_blending(built, batch)
        terms = built(batch)
        assert "cls" in terms
        assert all(value.shape == () and torch.isfinite(value) for value in terms.values())
        assert built.network(batch.images).shape == (6, C)

    def test_batch_of_one(self, network: str, method: str) -> None:
        built = make(network, method)
        batch = make_batch(torch.tensor([[1, -1, 0, 0]], dtype=torch.int8))
        start_blending(built, batch)
        total = sum(built(batch).values())
        total.backward()
        assert torch.isfinite(total)

    def test_all_unknown_gives_an_exact_zero_and_no_nan(self, network: str, method: str) -> None:
        built = make(network, method)
        batch = make_batch(torch.zeros(5, C, dtype=torch.int8))
        start_blending(built, batch)
        terms = built(batch)
        assert terms["cls"].item() == 0
        sum(terms.values()).backward()
        for name, parameter in built.named_parameters():
            assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name

    def test_plain_term_gives_zero_gradient_to_unknown_entries(self, network: str, method: str) -> None:
        built = make(network, method)
        batch = make_batch(random_labels())
        seen: list[torch.Tensor] = []
        inner = built.loss

        def spy(logits: torch.Tensor, targets: Targets) -> torch.Tensor:
            logits.retain_grad()
            seen.append(logits)
            return inner(logits, targets)

        built.loss = spy  # type: ignore[method-assign]
        start_blending(built, batch, epoch=0)
        seen.clear()
        built(batch)["cls"].backward()
        gradient = seen[0].grad
        assert gradient is not None
        assert (gradient[batch.labels == 0] == 0).all()
        assert (gradient[batch.labels != 0] != 0).all()

    def test_what_was_completed_is_counted(self, network: str, method: str) -> None:
        built = make(network, method)
        labels = torch.tensor([[1, 0, 0, -1], [0, 1, -1, 0]], dtype=torch.int8)
        batch = make_batch(labels)
        start_blending(built, batch)
        built(batch)
        completed = {key: value for key, value in built.figures().items() if key.startswith("completed")}
        unknown = 4
        assumed = {"completed_absent": unknown, "completed_present": 0}
        expected: dict[str, dict[str, float]] = {
            # two images are each other's partner: (0,1) takes from image 1, (1,0) from image 0; one PLRB
            # entry each
            "sarb": {"completed_ilrb": 2, "completed_plrb": 2},
            "dsrb": {"completed_iprb": 2, "completed_pprb": 2},
            "curriculum": {"completed_curriculum": 0},  # the first round labels nothing
            **dict.fromkeys(("an", "wan", "an_ls", "hill"), assumed),
            "ll_r": {"completed_absent": 3, "completed_present": 0},  # one of eight entries is chosen
            **{name: {"completed_absent": 3, "completed_present": 1} for name in ("ll_ct", "ll_cp")},
            "csl": {"completed_absent": 0, "completed_present": 0},  # the five highest per image are ignored
            "role": {"completed_estimated": unknown},
        }
        assert (
            completed.keys()
            == {f"completed_{name}" for name in built.completes} | expected.get(method, {}).keys()
        )
        assert all(number >= 0 for number in completed.values())
        if method in expected or not completed:
            assert completed == expected.get(method, {})
        else:  # how many depends on the scores of a random network
            assert sum(completed.values()) <= unknown * len(completed)
        assert method != "splc" or sum(completed.values()) == unknown

    @pytest.mark.parametrize("positives", range(13))
    def test_any_number_of_known_positives(self, network: str, method: str, positives: int) -> None:
        built = make(network, method)
        labels = torch.zeros(14, C, dtype=torch.int8)
        labels[:positives, 0] = 1
        labels[13, 1:] = -1
        batch = make_batch(labels)
        start_blending(built, batch)
        total = sum(built(batch).values())
        total.backward()
        assert torch.isfinite(total)
        if method == "sarb":
            assert built.plrb.counts.tolist() == [min(positives, 3), 0, 0, 0]  # type: ignore[union-attr]

    def test_same_seed_same_losses(self, network: str, method: str) -> None:
        losses = []
        for _ in range(2):
            built = make(network, method)
            batch = make_batch(random_labels())
            start_blending(built, batch)
            torch.manual_seed(3)
            losses.append({name: value.item() for name, value in built(batch).items()})
        assert losses[0] == losses[1]


@pytest.mark.parametrize(("network", "method"), POSSIBLE)
class TestTrained:
    def fit(
        self, data: sarb.Data, network: str, method: str, out: Path | None = None, **more: Any
    ) -> sarb.Model:
        return sarb.fit(
            data.train.hide(0.6, 0),
            network=VARIANTS[network][0],
            method=method,
            out=out,
            network_options=VARIANTS[network][1],
            method_options=METHOD_OPTIONS.get(method, {}),
            **{**TRAINING, "epochs": 4, **more},
        )

    def test_loss_falls(self, squares_data: sarb.Data, tmp_path: Path, network: str, method: str) -> None:
        import csv

        self.fit(
            squares_data,
            network,
            method,
            tmp_path / "run",
            epochs=8,
            lr=2e-2,
            backbone_options={"train_stages": 3},
        )
        rows = list(csv.DictReader((tmp_path / "run" / "log.csv").open()))
        # a mixup shares the plain term between the labels of two images, by chance
        first, last = (
            sum(float(row.get(f"loss_{term}", 0)) for term in ("cls", "mixup")) for row in (rows[0], rows[-1])
        )
        assert last < 0.9 * first

    def test_same_seed_same_weights_other_seed_other_weights(
        self, squares_data: sarb.Data, network: str, method: str
    ) -> None:
        first, second = (self.fit(squares_data, network, method, epochs=2) for _ in range(2))
        other = self.fit(squares_data, network, method, epochs=2, seed=2)
        for key, value in first.network.state_dict().items():
            assert torch.equal(value, second.network.state_dict()[key]), key
        learned = [name for name, _ in first.network.named_parameters() if not name.startswith("backbone.")]
        state = other.network.state_dict()
        assert not all(torch.equal(first.network.state_dict()[name], state[name]) for name in learned)

    def test_save_load_same_logits(
        self, squares_data: sarb.Data, tmp_path: Path, network: str, method: str
    ) -> None:
        model = self.fit(squares_data, network, method, tmp_path / "run", epochs=2)
        before = sarb.predict(model, squares_data.test).logits
        after = sarb.predict(sarb.load_model(tmp_path / "run"), squares_data.test).logits
        assert np.array_equal(before, after)

    def test_stop_and_resume_equals_an_undisturbed_run(
        self,
        squares_data: sarb.Data,
        tmp_path: Path,
        network: str,
        method: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        import sarb.training.loop as loop

        whole = self.fit(squares_data, network, method, tmp_path / "whole", valid=0.2)
        original = loop.Training._epoch

        def stop_at_two(self: Any, epoch: int) -> dict[str, Any]:
            if epoch == 2:
                raise KeyboardInterrupt
            return original(self, epoch)

        with monkeypatch.context() as patch:
            patch.setattr(loop.Training, "_epoch", stop_at_two)
            with pytest.raises(KeyboardInterrupt):
                self.fit(squares_data, network, method, tmp_path / "cut", valid=0.2)
        resumed = self.fit(squares_data, network, method, tmp_path / "cut", valid=0.2, resume=True)
        for key, value in whole.network.state_dict().items():
            assert torch.equal(value, resumed.network.state_dict()[key]), key
        assert _log(tmp_path / "whole") == _log(tmp_path / "cut")
        assert (tmp_path / "whole" / "steps.csv").read_bytes() == (
            tmp_path / "cut" / "steps.csv"
        ).read_bytes()

    def test_killed_inside_an_epoch_and_resumed_equals_an_undisturbed_run(
        self,
        squares_data: sarb.Data,
        tmp_path: Path,
        network: str,
        method: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        import sarb.training.loop as loop

        self.fit(squares_data, network, method, tmp_path / "whole", epochs=3, valid=0.2)
        original = loop.Training._step
        total = len((tmp_path / "whole" / "steps.csv").read_text().splitlines()) - 1
        chance = random.Random(f"{network} {method}")
        for stop in sorted(chance.sample(range(1, total), 2)):

            def until(self: Any, *given: Any, stop: int = stop) -> dict[str, float]:
                if len(self.state.steps) == stop:
                    raise KeyboardInterrupt
                return original(self, *given)

            with monkeypatch.context() as patch:
                patch.setattr(loop.Training, "_step", until)
                with pytest.raises(KeyboardInterrupt):
                    self.fit(
                        squares_data,
                        network,
                        method,
                        tmp_path / "cut",
                        epochs=3,
                        valid=0.2,
                        resume=True,
                        checkpoint_every=chance.choice([1, 2, 3]),
                    )
        self.fit(squares_data, network, method, tmp_path / "cut", epochs=3, valid=0.2, resume=True)
        assert _log(tmp_path / "whole") == _log(tmp_path / "cut")
        for file in ("steps.csv", "model/model.safetensors", "best/model.safetensors"):
            assert _checksum(tmp_path / "whole" / file) == _checksum(tmp_path / "cut" / file), file


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _log(folder: Path) -> list[dict[str, str]]:
    import csv

    rows = list(csv.DictReader((folder / "log.csv").open()))
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
