"""The names of ``--engine``, and what each one needs before any run is started."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sarb.errors import ConfigError, setting, unknown_name
from sarb.jobs.pool import Start
from sarb.jobs.slurm import read_options
from sarb.registry import find

#: name -> function that opens the engine
ENGINES = {
    "local": "sarb.jobs.local:opened",
    "ray": "sarb.jobs.ray_jobs:opened",
    "slurm": "sarb.jobs.slurm:opened",
}
#: engine -> package it needs; the extra has the name of the engine
PACKAGES = {"ray": "ray", "slurm": "submitit"}


@dataclass(frozen=True)
class Work:
    """What an engine has to run.

    Attributes:
        call: ``module:function`` that answers a task.
        threads: of each task.
        jobs: most tasks at once.
        folder: of the results.
        log: file for messages.
    """

    call: str
    threads: int
    jobs: int
    folder: Path
    log: Path


@dataclass(frozen=True)
class Engine:
    """Where runs are computed.

    Attributes:
        name: a key of ``ENGINES``.
        address: of a running Ray cluster; None starts one on this computer.
        slurm: ``KEY=VALUE`` texts for Slurm, see :mod:`sarb.jobs.slurm`.
    """

    name: str = "local"
    address: str | None = None
    slurm: Sequence[str] = ()

    def check(self) -> None:
        """Raise with everything that is wrong, before any data are read."""
        problems = []
        if self.name not in ENGINES:
            problems.append(unknown_name("engine", self.name, ENGINES))
        package = PACKAGES.get(self.name)
        if package is not None and find_spec(package) is None:
            problems.append(f'engine {self.name}: needs {package}: pip install "sarb[{self.name}]"')
        if self.address is not None and self.name != "ray":
            problems.append(f"{setting('address', self.address)} is for {setting('engine', 'ray')}")
        if self.slurm and self.name != "slurm":
            problems.append(f"{setting('slurm', self.slurm[0])} is for {setting('engine', 'slurm')}")
        if self.name == "slurm":
            problems += read_options(self.slurm)[1]
        if problems:
            raise ConfigError(problems)

    def open(self, work: Work) -> AbstractContextManager[Start]:
        """Prepare the engine; the context gives what starts a runner."""
        self.check()
        found: AbstractContextManager[Start] = find("engine", ENGINES, self.name)(self, work)
        return found
