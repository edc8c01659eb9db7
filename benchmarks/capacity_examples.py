"""Worked examples of docs/scaling.md: what the capacity model says for data that does not fit into this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.capacity_parts import Sizes

#: (part, "seconds" or "memory", sizes) -> a number
Predict = Callable[[str, str, Sizes], float]

#: floating-point operations per second that one core reaches here in the backbone; GPUs reach so much in such networks
#: (peak × share used); these are assumptions, nothing here was measured on a GPU
GPU_FLOPS = 312e12 * 0.3
#: parameters that a step sends between devices (ResNet-101's last stage and SARB's head with 80 categories), bytes each
GRADIENTS, BYTES = 25e6, 4
#: bytes per second of a ring all-reduce: between GPUs of one node, and between nodes (100 Gbit/s, four fifths used)
INSIDE, BETWEEN = 100e9, 10e9
#: floating-point operations of ResNet-101 forward per pixel, and of forward and backward with the last stage trained
RESNET_FLOP = 7.8e9 * 2 / 224**2
TRAIN_FACTOR = 1.5
#: steps of SARB behind the backbone: floating-point operations per image, category and cell, forward and backward
HEAD_FLOP = 3 * 2 * 1024 * 512 / 49


@dataclass(frozen=True)
class Machine:
    """Cores and GPUs of a node, and the number of nodes."""

    name: str
    cores: int
    gpus: int = 0
    nodes: int = 1


def complete(predict: Predict, images: float, categories: int, size: int, machine: Machine) -> dict[str, str]:
    """Label images once: reading, the backbone, and writing scores; on GPUs the backbone is free of the cores."""
    chunk = 32
    read = predict("read", "seconds", Sizes(chunk, 0, size)) / chunk
    forward = predict("backbone", "seconds", Sizes(0, 0, size, 8)) / 8
    fill = predict("complete", "seconds", Sizes(100_000, categories)) / 100_000
    cores = machine.cores * machine.nodes
    host = (read + fill + (0 if machine.gpus else forward)) * images / cores
    device = (
        images * RESNET_FLOP / 10 * size**2 / (GPU_FLOPS * machine.gpus * machine.nodes)
        if machine.gpus
        else 0.0
    )
    parts = {"reading": read * images / cores, "filling in": fill * images / cores}
    parts["backbone"] = device if machine.gpus else forward * images / cores
    return _row(
        "complete",
        images,
        categories,
        size,
        machine,
        max(host, device),
        parts,
        scores=4 * images * categories,
    )


def train(
    images: float, categories: int, size: int, epochs: int, batch: int, machine: Machine, read: float
) -> dict[str, str]:
    """Train the paper's recipe on GPUs: the step on the devices, the exchange of gradients, reading on the cores."""
    devices = machine.gpus * machine.nodes
    steps = epochs * images / (batch * devices)
    flop = batch * (RESNET_FLOP * size**2 * TRAIN_FACTOR + HEAD_FLOP * categories * (size / 32) ** 2)
    exchange = 0.0
    if devices > 1:
        exchange = (
            2 * (devices - 1) / devices * GRADIENTS * BYTES / (BETWEEN if machine.nodes > 1 else INSIDE)
        )
    parts = {
        "step": steps * flop / GPU_FLOPS,
        "gradients": steps * exchange,
        "reading": epochs * images * read / (machine.cores * machine.nodes),
    }
    total = max(parts["step"] + parts["gradients"], parts["reading"])
    return _row(
        f"train, {epochs} epochs", images, categories, size, machine, total, parts, scores=images * categories
    )


def _row(
    what: str,
    images: float,
    categories: int,
    size: int,
    machine: Machine,
    seconds: float,
    parts: dict[str, float],
    scores: float,
) -> dict[str, str]:
    first = max(parts, key=lambda name: parts[name])
    return {
        "what": what,
        "images": f"{images:,.0f}",
        "categories": f"{categories:,}",
        "size": str(size),
        "machine": machine.name,
        "hours": f"{seconds / 3600:.3g}",
        "saturates first": first,
        "its hours": f"{parts[first] / 3600:.3g}",
        "labels or scores": f"{scores / 1e9:.3g} GB",
    }


def examples(predict: Predict) -> list[dict[str, str]]:
    """COCO on one and eight GPUs, Open Images with 600 and 20,000 categories, a billion images to complete."""
    here = Machine("2 cores", 2)
    one = Machine("1 GPU, 16 cores", 16, 1)
    eight = Machine("8 GPUs, 128 cores", 128, 8)
    cluster = Machine("16 nodes of 8 GPUs, 128 cores", 128, 8, 16)
    many = Machine("64 nodes of 64 cores", 64, nodes=64)
    read = predict("read", "seconds", Sizes(32, 0, 448)) / 32
    return [
        train(82_081, 80, 448, 20, 16, one, read),
        train(82_081, 80, 448, 20, 16, eight, read),
        train(9e6, 600, 448, 20, 16, eight, read),
        train(9e6, 600, 448, 20, 16, cluster, read),
        train(9e6, 20_000, 448, 20, 16, cluster, read),
        complete(predict, 1e5, 80, 320, here),
        complete(predict, 9e6, 600, 320, here),
        complete(predict, 9e6, 600, 320, eight),
        complete(predict, 9e6, 20_000, 320, eight),
        complete(predict, 1e9, 600, 224, many),
        complete(predict, 1e9, 600, 224, cluster),
    ]
