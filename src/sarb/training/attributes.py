"""What a method and its network keep between two steps outside parameters and buffers.

SARB counts the labels that it has completed in this epoch; a method of your own may keep a list of losses or a
random generator. A checkpoint inside an epoch holds what has changed since the training began: numbers, text,
tensors, arrays and generators, and lists, tuples, sets and dicts of these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: what every module has
INTERNAL = frozenset(vars(nn.Module()))
CONTAINERS: dict[str, type[list[Any]] | type[tuple[Any, ...]] | type[set[Any]]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
}

#: turns a tensor into something that JSON can hold
Keep = Callable[[Tensor], Any]


class NotStorableError(Exception):
    """An attribute that no checkpoint can hold; the text is its name."""


class Attributes:
    """The attributes of a module and its parts, compared with how they were when this object was made.

    Args:
        module: the method.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        # held, so that no later tensor gets the id of one of these
        self._held: list[Tensor] = []
        self._start = {name: (value, _signature(value, self._held)) for name, value in self._all()}

    def _all(self) -> Iterator[tuple[str, Any]]:
        """Name with dots, and value."""
        saved = self._module.state_dict().keys()
        for path, part in self._module.named_modules():
            prefix = f"{path}." if path else ""
            for name, value in vars(part).items():
                if name not in INTERNAL and not callable(value):
                    yield prefix + name, value
        yield from ((name, value) for name, value in self._module.named_buffers() if name not in saved)

    def changed(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What differs from the start: for JSON, and the tensors that it refers to.

        Raises:
            NotStorableError: an attribute has become something that cannot be stored.
        """
        tensors: dict[str, Tensor] = {}

        def keep(value: Tensor) -> str:
            key = str(len(tensors))
            tensors[key] = value.detach().cpu().contiguous().clone()
            return key

        values = {}
        for name, value in self._all():
            before = self._start.get(name)
            if before is not None and before[0] is value and before[1] == _signature(value, []):
                continue
            try:
                values[name] = encode(value, keep)
            except TypeError as error:
                raise NotStorableError(name) from error
        return values, tensors

    def restore(self, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Set the attributes that :meth:`changed` returned."""
        for name, value in values.items():
            path, _, attribute = name.rpartition(".")
            part = self._module.get_submodule(path)
            now = getattr(part, attribute, None)
            found = decode(value, tensors)
            if isinstance(now, torch.Generator) and isinstance(found, torch.Generator):
                now.set_state(found.get_state())  # somebody else may draw from the same one
            else:
                setattr(part, attribute, found)


def _signature(value: Any, held: list[Tensor]) -> Any:
    """Something that differs if the value has changed; of a tensor, that it is the same and not written to.

    Arrays and generators always count as changed: they give a new tensor each time. ``held`` gets all tensors.
    """

    def keep(tensor: Tensor) -> list[int]:
        held.append(tensor)
        return [id(tensor), tensor._version]

    try:
        return encode(value, keep)
    except (TypeError, RuntimeError):  # not storable, or a tensor of inference mode
        return id(value)


def encode(value: Any, keep: Keep) -> Any:
    """A value for JSON; ``keep`` takes its tensors. TypeError if the value is of another kind."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item(), keep)
    for name, container in CONTAINERS.items():
        if type(value) is container:
            return [name, [encode(item, keep) for item in value]]
    if type(value) is dict:
        return ["dict", [[encode(key, keep), encode(item, keep)] for key, item in value.items()]]
    if isinstance(value, Tensor):
        return ["tensor", keep(value), str(value.device)]
    if isinstance(value, np.ndarray):
        return ["array", keep(torch.from_numpy(value))]
    if isinstance(value, torch.Generator):
        return ["torch", keep(value.get_state()), str(value.device)]
    if isinstance(value, np.random.Generator):
        return ["numpy", encode(value.bit_generator.state, keep)]
    if isinstance(value, random.Random):
        return ["python", encode(value.getstate(), keep)]
    raise TypeError(f"a checkpoint cannot hold {type(value).__name__}")


def decode(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """What :func:`encode` made this of."""
    if not isinstance(value, list):
        return value
    kind, content, *device = value
    if kind in CONTAINERS:
        return CONTAINERS[kind](decode(item, tensors) for item in content)
    if kind == "dict":
        return {decode(key, tensors): decode(item, tensors) for key, item in content}
    if kind == "tensor":
        return tensors[content].to(device[0])
    if kind == "array":
        return tensors[content].numpy()
    if kind == "torch":
        made = torch.Generator(device[0])
        made.set_state(tensors[content])
        return made
    state = decode(content, tensors)
    if kind == "numpy":
        bits = getattr(np.random, state["bit_generator"])()
        bits.state = state
        return np.random.Generator(bits)
    drawn = random.Random()
    drawn.setstate(state)
    return drawn
