"""Content that is well-formed and wrong: values of other types and sizes, in JSON, npz and safetensors files."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save

#: values that a field of a JSON file may be replaced with; a function of the old value
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    10**6,
    10**9,
    10**18,
    10**30,
    0.5,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "a\0b",
    "../../etc/passwd",
    "/dev/zero",
    "http://example.invalid/x",
    "os:system",
    "x" * 100_000,
    [],
    {},
    [[[]]],
    [None],
    {"name": "x"},
    ["a"] * 50_000,
    [[0] * 1000] * 100,
]
#: whole hostile texts
TEXTS = [
    b"",
    b"null",
    b"[]",
    b"3",
    b'"text"',
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b"1" * 10_000,
    b'{"format": 1, "format": 2}',
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b'{"categories": NaN}',
    b'{"format": 1e999}',
]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in JSON, at most 30 of a list."""
    found = [at] if at else []
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value[:30]) if isinstance(value, list) else ()
    )
    for key, each in items:
        found += places(each, (*at, key))
    return found


def mutate(content: Any, chance: random.Random) -> None:
    """Replace, remove, add or double a value in JSON."""
    place = chance.choice(places(content))
    parent = content
    for key in place[:-1]:
        parent = parent[key]
    how = chance.random()
    if how < 0.75:
        parent[place[-1]] = chance.choice(VALUES)
    elif how < 0.85:
        del parent[place[-1]]
    elif isinstance(parent, dict):
        parent[chance.choice(["recipe", "weights", "__class__", "x", "graph", "words"])] = chance.choice(
            VALUES
        )
    else:
        parent.append(parent[place[-1]])


def write_json(file: Path, content: Any) -> None:
    """Write JSON, also half characters."""
    file.write_bytes(json.dumps(content).encode("utf-8", "surrogatepass"))


def reshape(file: Path, chance: random.Random) -> None:
    """Give a file another content of the same format."""
    if file.suffix == ".json":
        if chance.random() < 0.15:
            file.write_bytes(chance.choice(TEXTS))
            return
        content = json.loads(file.read_bytes())
        for _ in range(chance.choice((1, 1, 2, 5))):
            mutate(content, chance)
        write_json(file, content)
    elif file.suffix == ".npz":
        file.write_bytes(_npz(file, chance))
    else:
        file.write_bytes(_tensors(file, chance))


def _npz(file: Path, chance: random.Random) -> bytes:
    with np.load(file) as stored:
        arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
    name = chance.choice(list(arrays))
    array = arrays[name]
    changes: list[Callable[[], Any]] = [
        lambda: array[:0],
        lambda: array[..., :1],
        lambda: array[None],
        lambda: array.ravel(),
        lambda: np.concatenate([array, array]),
        lambda: array.astype("U") if array.dtype.kind != "U" else np.zeros(array.shape, np.float32),
        lambda: np.full(array.shape, np.nan),
        lambda: np.full(array.shape, 7, np.int64),
        lambda: np.full(array.shape, "\ud800"),
        lambda: np.full(array.shape, ""),
        lambda: np.zeros(array.shape, [("a", "i4"), ("b", "f8")]),
        lambda: np.array(3),
        lambda: np.zeros(array.shape, "M8[s]"),
        lambda: np.zeros(array.shape, complex),
    ]
    how = chance.randrange(len(changes) + 3)
    if how < len(changes):
        arrays[name] = changes[how]()
    elif how == len(changes):
        del arrays[name]
    buffer = io.BytesIO()
    if how <= len(changes):
        np.savez_compressed(buffer, **arrays)
        return buffer.getvalue()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, values in arrays.items():
            with archive.open(f"{each}.npy", "w", force_zip64=True) as stream:
                if each == name and how == len(changes) + 1:  # a zip bomb: 1.5 GB of zeros
                    header = {"descr": "<f4", "fortran_order": False, "shape": (375_000, 1000)}
                    np.lib.format.write_array_header_1_0(stream, header)
                    for _ in range(30):
                        stream.write(bytes(50_000_000))
                elif each == name:  # a header that promises far more than there is
                    header = {"descr": "<U1000", "fortran_order": False, "shape": (10**9,)}
                    np.lib.format.write_array_header_1_0(stream, header)
                else:
                    np.lib.format.write_array(stream, values)
    return buffer.getvalue()


def _tensors(file: Path, chance: random.Random) -> bytes:
    with safe_open(file, framework="pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in list(stored.keys())}
        metadata = stored.metadata()
    name = chance.choice(sorted(tensors))
    tensor = tensors[name]
    how = chance.randrange(8)
    if how == 0:
        tensors[name] = torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor
    elif how == 1:
        del tensors[name]
    elif how == 2:
        tensors[f"{name}.more"] = tensor.clone()
    elif how == 3:
        tensors[name] = tensor.double()
    elif how == 4:
        tensors[name] = tensor.flatten()
    elif how == 5:
        tensors[name] = torch.zeros(())
    elif how == 6:
        metadata = {}
    elif metadata and "state" in metadata:
        state = json.loads(metadata["state"])
        mutate(state, chance)
        metadata = {"state": json.dumps(state)}
    return bytes(save(tensors, metadata))


def _options(part: str, **options: Any) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        config.setdefault(f"{part}_options", {}).update(options)

    return change


def _field(**fields: Any) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        config.update(fields)

    return change


#: configurations of a model made by hand
CONFIGS: list[Callable[[dict[str, Any]], None]] = [
    _options("network", dim=10**9),
    _options("network", dim=60_000, hidden=60_000),
    _options("network", width=10**9),
    _options("network", bank=10**10),
    _options("network", concepts=10**9),
    _options("network", neighbours=10**9),
    _options("network", neighbours=-1),
    _options("network", steps=10**9),
    _options("network", word_dim=10**9),
    _options("network", grid=0),
    _options("network", dropout=7.0),
    _options("network", residual="probe", residual_options={"residual": "probe"}),
    _options("network", residual="ssgrl", residual_options={"dim": 10**8}),
    _options("network", residual="ssgrl", residual_options={"steps": 10**9}),
    _options("backbone", weights="/etc/passwd"),
    _options("backbone", weights="/dev/zero"),
    _options("backbone", scales=[1, 1e9]),
    _options("backbone", scales=[1.0, *(1 + n / 1000 for n in range(1, 500))]),
    _options("backbone", train_stages=10**9),
    _options("backbone", name="resnet101"),
    _field(backbone="os:system"),
    _field(backbone="../../tiny"),
    _field(backbone="resnet101"),
    _field(backbone={"name": "tiny"}),
    _field(network="builtins:exec"),
    _field(network=["ssgrl"]),
    _field(network="gcn_ml"),
    _field(network="kggr"),
    _field(image_size=10**6),
    _field(image_size=0),
    _field(image_size=-5),
    _field(image_size=32.5),
    _field(image_size="32"),
    _field(categories=[str(n) for n in range(300_000)]),
    _field(categories=["x"] * 3),
    _field(categories=[]),
    _field(categories=3),
    _field(categories=["a", None, "b"]),
    _field(categories={"a": 1}),
    _field(categories=["\ud800", "b", "c"]),
    _field(format=0),
    _field(format=10**9),
    _field(format="1"),
    _field(weights="/etc/passwd"),
    _field(graph=[[1]]),
    _field(words="/etc/passwd"),
]


def hostile_config(run: Path, case: int, chance: random.Random) -> str:
    """Write a hostile configuration into the model folder or the run folder; say into which."""
    where = "run" if case % 3 == 2 else "model"
    file = (run / "model" if where == "model" else run) / "config.json"
    content = json.loads(file.read_bytes())
    number = case // 3 * 2 + case % 3
    if where == "model" and number < len(CONFIGS):
        CONFIGS[number](content)
        write_json(file, content)
    else:
        reshape(file, chance)
    return where
