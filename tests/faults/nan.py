"""NaN put into a training: it stops at this step, names where it began, and writes none of it.

With the fault gone, ``--resume`` ends with the weights of a training that nobody disturbed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults.bench import BrokenPromiseError, Kind
from tests.faults.children import Finished, start
from tests.faults.killing import SOURCE, Plan, arm
from tests.faults.kills import TRAININGS, _trained, _with_cache
from tests.faults.small_run import small_run

NAN = float("nan")
WORDS = (
    *("train", *SOURCE, *TRAININGS["SARB"], "--backbone", "tiny", "--image-size", "32", "--batch-size", "4"),
    *("--out", "{disk}/run", "--resume", "--quiet"),
)
#: what is made NaN -> what the error must name
TARGETS = {
    "term cls": r"the loss is not finite at {where}: cls is nan",
    "term cst": r"the loss is not finite at {where}: cst is nan",
    "term ilrb": r"the loss is not finite at {where}: ilrb is nan",
    "term plrb": r"the loss is not finite at {where}: plrb is nan",
    "features": r"the loss is not finite at {where}: .* cached features of 1 images are not finite: \d+\.png",
    "pixels": r"the loss is not finite at {where}: .* pixels of 1 images are not finite: \d+\.png",
    "gradient": r"the gradient is not finite at {where}: network\.classifier",
    "weights": r"{where}: network\.classifier\S* .*not finite.* nothing was written",
    "alpha": r"{where}: ilrb\.alpha .*not finite.* nothing was written",
    "beta": r"{where}: plrb\.beta .*not finite.* nothing was written",
    "prototypes": r"{where}: plrb\.centers .*not finite.* nothing was written",
    "optimiser": r"{where}: optimizer\.\d+\.exp_avg\S* .*not finite.* nothing was written",
}
#: what is only in use from the next step on, and is found there if no checkpoint is due before
LATER = "weights, next step"
#: (what, epoch, step) of each case; blending begins with epoch 1, an epoch has four steps
CASES = [
    *(("term cls", 0, 1), ("term cls", 2, 3), ("term cst", 0, 2), ("term cst", 1, 0)),
    *(("term ilrb", 1, 1), ("term ilrb", 2, 0), ("term plrb", 1, 2), ("term plrb", 2, 2)),
    *(("features", 0, 1), ("features", 2, 1), ("pixels", 1, 3), ("gradient", 0, 3), ("gradient", 2, 2)),
    *(("weights", 1, 1), ("weights", 2, 3), (LATER, 1, 0), ("alpha", 1, 3), ("beta", 2, 1)),
    *(("prototypes", 1, 2), ("optimiser", 2, 0)),
]


# in the process of the command


def _poison(what: str, epoch: int, step: int) -> None:
    """Make something NaN in one step."""
    arm(Plan())
    loop: Any = importlib.import_module("sarb.training.loop")
    kind = loop.Training
    real_step = kind._step

    def stepping(self: Any, batch: Any, at_epoch: int, number: int, count: int) -> Any:
        if (at_epoch, number) != (epoch, step):
            return real_step(self, batch, at_epoch, number, count)
        undo = _set(self, what, batch)
        found = real_step(self, batch, at_epoch, number, count)
        undo()
        return found

    kind._step = stepping


def _set(training: Any, what: str, batch: Any) -> Callable[[], None]:
    """Make it NaN before the step, or in it; return what ends that."""
    method = training.method
    if what.startswith("term "):
        return _wrap(training, "wrapped", lambda terms: {**terms, what[5:]: terms[what[5:]] * NAN})
    if what in ("features", "pixels"):
        batch.images[1, 0] = NAN
        return lambda: None
    if what == "gradient":
        weight = _named(method, "network.classifier")
        hook = weight.register_hook(lambda gradient: gradient * NAN)
        return lambda: hook.remove()
    if what == "optimiser":
        return lambda: _moments(training)["exp_avg"].fill_(NAN)
    names = {
        "weights": "network.classifier",
        LATER: "network.classifier",
        "alpha": "ilrb.alpha",
        "beta": "plrb.beta",
        "prototypes": "plrb.centers",
    }
    tensor = _named(method, names[what])
    return lambda: tensor.data.fill_(NAN)


def _named(method: Any, start: str) -> Any:
    """The first parameter or buffer whose name begins so."""
    tensors = {**dict(method.named_parameters()), **dict(method.named_buffers())}
    return next(tensor for name, tensor in tensors.items() if name.startswith(start))


def _moments(training: Any) -> dict[str, Any]:
    state: dict[str, Any] = next(iter(training.optimizer.state.values()))
    return state


def _wrap(training: Any, name: str, change: Callable[[Any], Any]) -> Callable[[], None]:
    real = getattr(training, name)
    setattr(training, name, lambda batch: change(real(batch)))
    return lambda: setattr(training, name, real)


# in the process of the test


def _run(folder: Path, disk: Path, more: list[str], fault: tuple[str, int, int] | None) -> Finished:
    words = [word.format(disk=disk, base=small_run()) for word in (*WORDS, *more)]
    environment = {"SARB_CACHE": str(disk / "cache"), "OMP_NUM_THREADS": "1"}
    before: Callable[..., None] = arm if fault is None else _poison
    given = (Plan(),) if fault is None else fault
    return start(words, folder, environment=environment, before=before, given=given).wait()


@cache
def _undisturbed(pixels: bool) -> Any:
    folder = small_run() / f"finite-{pixels}"
    folder.mkdir()
    _with_cache(folder)
    done = _run(folder, folder, ["--augment", "--no-cache"] if pixels else [], None)
    assert done.code == 0, done.err
    return _trained(folder)


def _case(folder: Path, seed: int) -> str:
    what, epoch, step = CASES[seed]
    disk = folder / "disk"
    disk.mkdir()
    _with_cache(disk)
    more = ["--augment", "--no-cache"] if what == "pixels" else []
    every = ["--checkpoint-every", "epoch" if what == LATER else "1"]
    done = _run(folder, disk, [*more, *every], (what, epoch, step))
    where = f"epoch {epoch}, step {step + (what == LATER)}"
    expected = r"the loss is not finite at {where}: .*weights are not finite: network\.classifier"
    pattern = TARGETS.get(what, expected).format(where=where)
    last = (done.err.splitlines() or [""])[-1]
    if done.code != 2 or "Traceback" in done.err or not re.search(pattern, last):
        raise BrokenPromiseError(f"exit {done.code}, expected /{pattern}/ in: {done.err[-1500:]}")
    _check_saved(disk / "run", epoch * 4 + (0 if what == LATER else step))
    done = _run(folder, disk, more, None)
    if done.code != 0:
        raise BrokenPromiseError(f"exit {done.code} when the fault is gone: {done.err[-1500:]}")
    if _trained(disk) != _undisturbed(what == "pixels"):
        raise BrokenPromiseError("other weights or tables than without the fault")
    return "named, none saved"


def _check_saved(run: Path, steps: int) -> None:
    """The last checkpoint is that of the step before, and all numbers in the folder are finite."""
    import json

    import torch
    from safetensors import safe_open

    for file in run.rglob("*.safetensors"):
        with safe_open(file, "pt") as stored:
            for name in stored.keys():  # noqa: SIM118  not a mapping
                tensor = stored.get_tensor(name)
                if tensor.is_floating_point() and not torch.isfinite(tensor).all():
                    raise BrokenPromiseError(f"{file}: {name} is not finite")
            if file.name == "state.safetensors":
                saved = len(json.loads(stored.metadata()["state"])["steps"])
                if saved != steps:
                    raise BrokenPromiseError(f"{file}: {saved} steps, expected {steps}")
    if (run / "model").exists():
        raise BrokenPromiseError("a model was written")


KINDS = [
    Kind(
        "NaN in loss terms, features, gradients, weights, α, β, prototypes or the optimiser",
        "Exit code 2; the error names term or tensor and step; nothing that is not finite is written; a resume "
        "without the fault ends as if nothing had happened.",
        len(CASES),
        2,
        _case,
    )
]
