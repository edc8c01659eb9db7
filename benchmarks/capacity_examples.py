"""Worked examples of docs/scaling.md: what the capacity model says about data that do not fit into this machine.

What a core takes, and the floating-point operations, parameters and bytes, are the model's. What GPUs and networks of
nodes do with them is assumed from public specifications: nothing here was measured on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.capacity_model import Predict, Sizes

#: floating-point operations per second of an NVIDIA A100 at its peak, fp16 or bf16 without sparsity (data sheet)
PEAK = 312e12
#: share of the peak that is used: 2,600 photos/s in training ResNet-50 (timm issue 1491) are a fifth
USED = (0.3, 0.1)
#: the same for EfficientNet, whose depthwise convolutions do little per byte: a guess
USED_LITE = (0.1, 0.02)
#: bytes per second that a ring all-reduce reaches, best and worst, in a node (NVLink: 300 GB/s in each direction) and
#: between nodes (200 and 100 Gbit/s); guesses of what is reached of the specification
LINK = {"in a node": (200e9, 50e9), "between nodes": (20e9, 5e9)}
#: bytes per second that a node reads photos with, 25 and 10 Gbit/s, and bytes of a photo
STORAGE, PHOTO = (2.5e9, 1e9), 150e3
#: bytes of memory of a GPU, and assumed for each of its node's GPUs, or for a node without any
ON_GPU, PER_GPU, PER_NODE = 80e9, 128e9, 256e9
#: parameters of ResNet-101's last stage, which is trained (counted)
STAGE = 14_964_736
#: weights, gradients and Adam's two averages, in float32
STATE, FLOAT = 16, 4
#: D, prototypes per category, known positives per image
WIDTH, PROTOTYPES, POSITIVES = 1024, 10, 3
SECONDS = 3600
#: images of a chunk, one on each core
CHUNK = Sizes(1024)

#: best and worst
Range = tuple[float, float]


@dataclass(frozen=True)
class Machine:
    """Cores and GPUs of a node, and the number of nodes."""

    name: str
    cores: int
    gpus: int = 0
    nodes: int = 1

    @property
    def devices(self) -> int:
        """All GPUs."""
        return self.gpus * self.nodes

    @property
    def all_cores(self) -> int:
        """Cores of all nodes."""
        return self.cores * self.nodes

    @property
    def memory(self) -> float:
        """Bytes of a node."""
        return self.gpus * PER_GPU or PER_NODE


@dataclass(frozen=True)
class Load:
    """What an example asks of one resource: hours, or bytes of which so many are there."""

    resource: str
    hours: Range | None = None
    size: float = 0.0
    room: float = 0.0

    @property
    def full(self) -> bool:
        """Whether it does not fit."""
        return self.hours is None and self.size > self.room


def _on_cores(resource: str, seconds: float, machine: Machine) -> Load:
    hours = seconds / machine.all_cores / SECONDS
    return Load(resource, (hours, hours))


def _on_gpus(resource: str, flop: float, machine: Machine, used: Range = USED) -> Load:
    return Load(resource, tuple(flop / (PEAK * share * machine.devices) / SECONDS for share in used))  # type: ignore[arg-type]


def _gradients(numbers: float, steps: float, machine: Machine) -> Load:
    """Each device sends and receives so many numbers in every step."""
    link = LINK["between nodes" if machine.nodes > 1 else "in a node"]
    hours = tuple(steps * FLOAT * numbers / speed / SECONDS for speed in link)
    return Load("gradients", hours)  # type: ignore[arg-type]


def train(
    predict: Predict,
    network: str,
    images: float,
    categories: int,
    known: float,
    machine: Machine,
    batch: int = 16,
) -> list[Load]:
    """Train with the recipe coco2014 (ResNet-101, 448 px, 20 epochs), ``batch`` images on each GPU.

    In a ring each device sends and receives 2 (n − 1) / n of the trained parameters in every step.
    """
    at = Sizes(1, categories, 448, batch)
    epochs = 20
    ssgrl = network == "ssgrl"
    behind = predict(f"parameters {network}", "count", at)
    learned = STAGE + behind
    head = predict("step", "flop", at) / batch if ssgrl else 6 * behind
    flop = predict("resnet101", "flop", at) / batch + head
    devices = machine.devices
    steps = epochs * images / (batch * devices)
    graph = FLOAT * categories * (categories + PROTOTYPES * WIDTH) if ssgrl else 0
    activations = predict("step", "memory", at) if ssgrl else 0
    loads = [
        _on_gpus("GPUs", epochs * images * flop, machine),
        _gradients(2 * (devices - 1) / devices * learned, steps, machine),
        _on_cores("reading", epochs * images * predict("read", "seconds", at), machine),
        Load("a step on a GPU", size=STATE * learned + graph + activations, room=ON_GPU),
        Load("labels", size=images * categories * machine.gpus, room=machine.memory),
    ]
    if ssgrl:  # the representations of all known positives, from which prototypes are computed
        loads.append(Load("known positives", size=FLOAT * WIDTH * images * known * POSITIVES, room=ON_GPU))
    return loads


def default(predict: Predict, images: float, categories: int, machine: Machine) -> list[Load]:
    """The default at 320 px: features on all cores, then the fit on one."""
    at = Sizes(1, categories, 320, 32)
    whole = Sizes(int(images), categories)
    fit = predict("fit", "seconds", whole) / SECONDS
    return [
        _on_cores("reading", images * predict("read", "seconds", at), machine),
        _on_cores("backbone", images * predict("backbone", "seconds", at) / at.B, machine),
        Load("fit, one core", (fit, fit)),
        Load("the fit", size=predict("fit", "memory", whole), room=machine.memory),
        Load("features on disk", size=images * predict("cache", "bytes", at), room=float("inf")),
    ]


def complete(predict: Predict, images: float, categories: int, machine: Machine) -> list[Load]:
    """Label images once with the default's backbone at 224 px, in chunks; on GPUs the backbone is free of cores."""
    at = Sizes(1, categories, 224, 32)
    chunk = CHUNK._replace(C=categories)
    many = Sizes(100_000, categories)  # in a chunk, nothing is calibrated
    fill = predict("complete", "seconds", many) / many.N
    forward = _on_cores("backbone", images * predict("backbone", "seconds", at) / at.B, machine)
    if machine.gpus:
        forward = _on_gpus("GPUs", images * predict("lite0", "flop", at) / at.B, machine, USED_LITE)
    storage = tuple(images * PHOTO / speed / machine.nodes / SECONDS for speed in STORAGE)
    return [
        Load("photos from storage", storage),  # type: ignore[arg-type]
        _on_cores("reading", images * predict("read", "seconds", at), machine),
        forward,
        _on_cores("filling in", images * fill, machine),
        Load(
            "chunks on all cores",
            size=predict("complete", "memory", chunk) * machine.cores,
            room=machine.memory,
        ),
        Load("scores on disk", size=FLOAT * images * categories, room=float("inf")),
    ]


def saturates(loads: list[Load]) -> str:
    """What does not fit, the worst first; else what takes the most hours, halfway between best and worst."""
    full = sorted((load for load in loads if load.full), key=lambda load: load.room / load.size)
    if full:
        return f"memory: {full[0].resource}"
    timed = [load for load in loads if load.hours is not None]
    return max(timed, key=lambda load: sum(load.hours or ())).resource


def examples(predict: Predict) -> list[dict[str, str]]:
    """COCO on one and eight GPUs, Open Images with 600 and 20,000 categories, a billion images to complete."""
    one = Machine("1 GPU, 16 cores", 16, 1)
    eight = Machine("8 GPUs, 128 cores", 128, 8)
    racks = Machine("64 nodes of 64 cores", 64, nodes=64)
    cluster = Machine("16 nodes of 8 GPUs, 128 cores", 128, 8, 16)
    coco, open_images = 82_783, 9e6
    worked = [
        ("COCO, 80 categories, SARB", one, train(predict, "ssgrl", coco, 80, 0.1, one)),
        ("COCO, 80 categories, SARB", eight, train(predict, "ssgrl", coco, 80, 0.1, eight)),
        ("Open Images, 600 categories, SARB", eight, train(predict, "ssgrl", open_images, 600, 1, eight)),
        ("Open Images, 600 categories, default", eight, default(predict, open_images, 600, eight)),
        (
            "Open Images, 20,000 categories, SARB",
            eight,
            train(predict, "ssgrl", open_images, 20_000, 1, eight),
        ),
        (
            "Open Images, 20,000 categories, pooled",
            eight,
            train(predict, "pooled", open_images, 20_000, 1, eight),
        ),
        (
            "Open Images, 20,000 categories, pooled",
            cluster,
            train(predict, "pooled", open_images, 20_000, 1, cluster),
        ),
        ("a billion photos to complete, 600 categories", racks, complete(predict, 1e9, 600, racks)),
        ("a billion photos to complete, 600 categories", cluster, complete(predict, 1e9, 600, cluster)),
    ]
    return [row for name, machine, loads in worked for row in _rows(name, machine, loads)]


def _rows(name: str, machine: Machine, loads: list[Load]) -> list[dict[str, str]]:
    first = saturates(loads)
    return [
        {
            "example": name,
            "machine": machine.name,
            "resource": load.resource,
            "hours_best": f"{load.hours[0]:.3g}" if load.hours else "",
            "hours_worst": f"{load.hours[1]:.3g}" if load.hours else "",
            "bytes": f"{load.size:.4g}" if load.hours is None else "",
            "room": f"{load.room:.4g}" if load.hours is None and load.room < float("inf") else "",
            "first": "yes" if first in (load.resource, f"memory: {load.resource}") else "no",
        }
        for load in loads
    ]
