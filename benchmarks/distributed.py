"""Train in one process and in several, and write how far the results are apart: ``python -m benchmarks.distributed``.

All on the demo set, small, with torchrun and gloo on a CPU. The last part needs root and iproute2: it makes two network
namespaces, which are two hosts as far as torchrun can tell. A row of the CSV has the command, the figure and its bound.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load_file

FIELDS = ("case", "figure", "value", "bound", "holds", "seed", "command")
#: 160 training and 31 test images: neither is divisible by the processes, nor by the batches
DATA = "--data demo -o train=160 -o test=31 -o size=64 --known 0.5 --backbone tiny --image-size 64"
COMMON = f"{DATA} --batch-size 7 --lr 0.002 --valid 0.1 --no-cache --augment"
METHODS = {
    "sarb": "--method sarb --network ssgrl --set network.dim=16 --set network.hidden=8 --set method.start=1 "
    "--set across_ranks=true --epochs 2",
    "partial_bce": "--method partial_bce --network pooled --epochs 2",
    "curriculum": "--method curriculum --network pooled --set method.rounds=2 --set method.threshold=1 --epochs 1",
}
STEPS = 20
PATIENCE = 600


class Work(NamedTuple):
    """Where the runs go, the seed, and the rows of the table."""

    folder: Path
    seed: int
    rows: list[dict[str, Any]]
    table: Path

    def words(self, out: str, options: str, more: str = "") -> list[str]:
        """Arguments of sarb."""
        end = f"--seed {self.seed} --out {self.folder / out} --quiet"
        return shlex.split(f"train {options} {COMMON} {more} {end}")

    def note(self, case: str, figure: str, value: float, bound: float, command: Sequence[str]) -> None:
        """Add a row; it holds if the value is at most the bound."""
        row = (case, figure, f"{value:.3g}", f"{bound:g}", value <= bound, self.seed, self.shown(command))
        self.rows.append(dict(zip(FIELDS, row, strict=True)))
        print(f"{case}, {figure}: {value:.3g}, at most {bound:g}", flush=True)
        self.table.parent.mkdir(parents=True, exist_ok=True)
        with self.table.open("w", newline="") as file:
            table = csv.DictWriter(file, FIELDS, lineterminator="\n")
            table.writeheader()
            table.writerows(self.rows)

    def shown(self, command: Sequence[str]) -> str:
        """The command as a user would type it."""
        text = shlex.join(command).replace(f"{sys.executable} -m torch.distributed.run", "torchrun")
        return text.replace(f"{sys.executable} -m sarb.cli", "sarb").replace(str(self.folder), "runs")


def torchrun(*options: str) -> list[str]:
    """The beginning of a command in two processes."""
    options = options or ("--standalone", "--nproc-per-node", "2")
    return [sys.executable, "-m", "torch.distributed.run", *options, "-m", "sarb.cli"]


ALONE = [sys.executable, "-m", "sarb.cli"]


def launch(count: int) -> list[str]:
    """The beginning of a command in one process or in several."""
    return ALONE if count == 1 else torchrun("--standalone", "--nproc-per-node", str(count))


def run(command: Sequence[str]) -> None:
    """Run it, and show what it says if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")


def apart(one: Path, other: Path) -> dict[str, float]:
    """How far two runs are apart: losses of the first steps, weights, test mAP and all test metrics."""
    losses = [
        [float(row["loss"]) for row in csv.DictReader((each / "steps.csv").open())] for each in (one, other)
    ]
    assert len(losses[0]) == len(losses[1]) >= STEPS
    first, second = (load_file(each / "checkpoint" / "state.safetensors") for each in (one, other))
    weights = [key for key in first if key.startswith("method.") and first[key].numel()]
    metrics = [json.loads((each / "metrics.json").read_text()) for each in (one, other)]
    return {
        "losses of the first 20 steps": max(
            abs(a - b) for a, b in zip(losses[0][:STEPS], losses[1][:STEPS], strict=True)
        ),
        "weights": max(float((first[key].double() - second[key].double()).abs().max()) for key in weights),
        "test mAP": abs(metrics[0]["mAP"] - metrics[1]["mAP"]),
    }


def compare(
    work: Work, precision: str, method: str, counts: Sequence[int] = (2,), more: str = "", what: str = ""
) -> None:
    """One process and several, with the same images per step."""
    bounds = {"losses of the first 20 steps": 1e-5, "weights": 1e-5, "test mAP": 0.0}
    if precision == "no":
        bounds = {"losses of the first 20 steps": 1e-4, "test mAP": 0.1}
    options = f"{METHODS[method]} --precision {precision}"
    names = {count: f"{method}-{precision}{more.replace(' ', '')}-{count}" for count in (1, *counts)}
    if not (work.folder / names[1]).exists():  # another part may have run it
        run([*ALONE, *work.words(names[1], options, more)])
    kind = "fp64" if precision == "fp64" else "fp32"
    for count in counts:
        command = [*launch(count), *work.words(names[count], options, more)]
        run(command)
        found = apart(work.folder / names[1], work.folder / names[count])
        case = f"{method}, {kind}, {count} processes against 1{what}"
        for figure, bound in bounds.items():
            work.note(case, figure, found[figure], bound, command)


def score_twice(work: Work) -> None:
    """Metrics of the same weights: 31 test images scored by two processes, and again by one."""
    folder = work.folder / "both"
    run([*torchrun(), *work.words("both", METHODS["sarb"])])
    command = [*ALONE, "evaluate", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    again, before = json.loads(done.stdout), json.loads((folder / "metrics.json").read_text())
    numbers = [key for key, value in again.items() if isinstance(value, float)]
    assert "mAP" in numbers
    differ = [key for key in numbers if again[key] != before[key]]
    work.note("31 test images scored by 2 processes and by 1", "metrics that differ", len(differ), 0, command)


def children(parent: int) -> dict[str, int]:
    """RANK -> process id of the processes that torchrun has started."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                pairs = (entry / "environ").read_bytes().split(b"\0")
                found |= {pair[5:].decode(): int(entry.name) for pair in pairs if pair.startswith(b"RANK=")}
    return found


def killed(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """SIGKILL for the only process, or the second one of torchrun, after an epoch; exit code and messages."""
    state = folder / "checkpoint" / "state.safetensors"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not state.is_file():
            time.sleep(0.01)
        os.kill(children(process.pid).get("1", process.pid), signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


def kill_a_rank(work: Work) -> None:
    """SIGKILL for the second process after an epoch; then resume with two processes, and with one."""
    options = f"{METHODS['sarb']} --precision fp64".replace("--epochs 2", "--epochs 4")
    run([*torchrun(), *work.words("whole", options)])
    command = [*torchrun(), *work.words("killed", options)]
    code, errors = killed(command, work.folder / "killed")
    said = [line for line in errors.splitlines() if line.startswith("sarb: ")]
    print("\n".join(said))
    unclear = 0 if code and said and all("--resume continues" in line for line in said) else 1
    work.note("a process is killed", "no clear message", unclear, 0, command)
    shutil.copytree(work.folder / "killed", work.folder / "alone")
    for name, count in (("killed", 2), ("alone", 1)):
        resumed = [*launch(count), *work.words(name, options), "--resume"]
        run(resumed)
        found = apart(work.folder / "whole", work.folder / name)
        bound = 0.0 if count == 2 else 1e-5
        for figure in ("losses of the first 20 steps", "weights"):
            work.note(f"killed in 2 processes, resumed in {count}", figure, found[figure], bound, resumed)


def two_hosts(work: Work) -> None:
    """One process in each of two network namespaces, joined by a pair of virtual network cards."""
    names = [f"sarb{os.getpid()}{end}" for end in "ab"]
    cards = [f"sv{os.getpid() % 10000}{end}" for end in "ab"]
    options = f"{METHODS['sarb']} --precision fp64"
    run([*ALONE, *work.words("one-host", options)])
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        subprocess.run(["ip", "link", "add", cards[0], "type", "veth", "peer", "name", cards[1]], check=True)
        commands = []
        for number, (name, card) in enumerate(zip(names, cards, strict=True)):
            inside = ["ip", "netns", "exec", name]
            subprocess.run(["ip", "link", "set", card, "netns", name], check=True)
            address = ["ip", "addr", "add", f"10.77.0.{number + 1}/24", "dev", card]
            for setup in (address, ["ip", "link", "set", card, "up"], ["ip", "link", "set", "lo", "up"]):
                subprocess.run([*inside, *setup], check=True)
            start = torchrun(
                *("--nnodes", "2", "--node-rank", str(number), "--nproc-per-node", "1"),
                *("--master-addr", "10.77.0.1", "--master-port", "29533"),
            )
            commands.append(
                [*inside, "env", f"GLOO_SOCKET_IFNAME={card}", *start, *work.words("hosts", options)]
            )
        hosts = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
        for host in hosts:
            _, errors = host.communicate(timeout=PATIENCE)
            if host.returncode:
                raise SystemExit(errors)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)
    found = apart(work.folder / "one-host", work.folder / "hosts")
    for figure in ("losses of the first 20 steps", "weights", "test mAP"):
        bound = 0.0 if figure == "test mAP" else 1e-5
        work.note(
            "sarb, fp64, 2 hosts (network namespaces) against 1 process",
            figure,
            found[figure],
            bound,
            commands[1],
        )


def compare_all(work: Work) -> None:
    """All methods, in both precisions."""
    for precision in ("fp64", "no"):
        for method in METHODS:
            compare(work, precision, method)


def more_processes(work: Work) -> None:
    """Three and four processes, a last batch of one image, and a run that another number of processes finishes."""
    for method in METHODS:
        compare(work, "fp64", method, (3, 4))
        compare(work, "fp64", method, (2,), "--batch-size 11", ", last batch of one image")
    options = f"{METHODS['sarb']} --precision fp64".replace("--epochs 2", "--epochs 4")
    run([*ALONE, *work.words("undisturbed", options)])
    for before, after in ((3, 1), (4, 1), (1, 3)):
        name = f"from-{before}-to-{after}"
        killed([*launch(before), *work.words(name, options)], work.folder / name)
        resumed = [*launch(after), *work.words(name, options), "--resume"]
        run(resumed)
        found = apart(work.folder / "undisturbed", work.folder / name)
        for figure in ("losses of the first 20 steps", "weights"):
            work.note(
                f"killed in {before} processes, resumed in {after}", figure, found[figure], 1e-5, resumed
            )


PARTS = {
    "compare": compare_all,
    "metrics": score_twice,
    "kill": kill_a_rank,
    "hosts": two_hosts,
    "more": more_processes,
}


def main() -> None:
    """Run everything, or some parts, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--out", type=Path, default=Path("results/distributed/acceptance.csv"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder), given.seed, [], given.out)
        for part in given.parts or PARTS:
            PARTS[part](work)
    raise SystemExit(0 if all(row["holds"] for row in work.rows) else 1)


if __name__ == "__main__":
    main()
