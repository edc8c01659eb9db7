"""Very many images by two workers: every image once in spite of kills, flat memory, and speed beside local processes.

    python -m benchmarks.bulk --work /tmp/bulk --out results/bulk

It draws the images, fits a small model, and then: (1) local processes label them all, for reference. (2) A Ray cluster
of this computer with two workers labels them all, while a worker is killed twice and the driver once (and started
again); memory of driver and workers is sampled every half second. (3) Both engines in turn label the first images, for
speed. Speed is taken between the fourth finished part and the last one, so start-up does not count.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PIL import Image

PORT = 6397
WORKERS = 2
CATEGORIES = ("round", "square", "dark", "light", "noisy")
#: share of the parts at which a worker, a worker, and the driver are killed
KILLS = (("worker", 0.15), ("worker", 0.4), ("driver", 0.6))


def main() -> None:
    """Run all three steps and write tables and a plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--part-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timed", type=int, default=4000, help="images of a timed round")
    given = parser.parse_args()
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
        "SARB_CACHE": str(given.work / "cache"),
    }
    # a token of this cluster alone, which its drivers inherit
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    given.out.mkdir(parents=True, exist_ok=True)
    folder = drawn(given.work / "images", given.images)
    run = fitted(given.work, folder)
    cluster = start_cluster(given.work / "ray-files")
    try:
        faults(run, folder, given, cluster.pid)
        speed(run, folder, given, cluster)
    finally:
        stop(cluster)


def drawn(folder: Path, number: int) -> Path:
    """Draw JPEGs of 64 × 64 pixels, a thousand to a folder."""
    if (folder / "whole").exists():
        return folder
    for index in range(number):
        place = folder / f"{index // 1000:03d}" / f"{index:06d}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        source = np.random.default_rng(index)
        small = source.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(small).resize((64, 64), Image.Resampling.BICUBIC).save(place, quality=90)
    (folder / "whole").touch()
    return folder


def fitted(work: Path, folder: Path) -> Path:
    """A model with a real backbone, trained for one epoch on random labels: its quality is of no interest here."""
    run = work / "run"
    if run.exists():
        return run
    choose = random.Random(0)
    images = sorted(folder.rglob("*.jpg"))[:64]
    table = work / "labels.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "split", *CATEGORIES])
        for place, image in enumerate(images):
            labels = [choose.randint(0, 1) for _ in CATEGORIES]
            writer.writerow([image, "train" if place < 48 else "test", *labels])
    words = ["train", "--data", str(table), "-o", "encoding=binary", "--out", str(run), "--image-size", "64"]
    words += ["--network", "pooled", "--method", "partial_bce", "--epochs", "1"]
    subprocess.run([sys.executable, "-m", "sarb.cli", *words], check=True)
    return run


def start_cluster(files: Path) -> subprocess.Popen[bytes]:
    """Start a Ray cluster of this computer with two processors; it outlives any driver."""
    ray = Path(sys.executable).with_name("ray")
    words = ["start", "--head", f"--num-cpus={WORKERS}", f"--port={PORT}", "--include-dashboard=false"]
    words += ["--object-store-memory=100000000", "--block", "--disable-usage-stats"]
    # in the usual folder other programs would find it, and join it
    words += [f"--temp-dir={files}"]
    return subprocess.Popen(
        [ray, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def stop(cluster: subprocess.Popen[bytes]) -> None:
    """End the cluster and everything it started."""
    below = psutil.Process(cluster.pid).children(recursive=True)
    cluster.terminate()
    _, alive = psutil.wait_procs(below, 15)
    for process in alive:
        process.kill()
    cluster.wait()


def command(run: Path, folder: Path, out: Path, size: int, *more: str) -> list[str]:
    """``sarb predict`` with parts."""
    words = ["predict", str(run), str(folder), "--out", f"{out}/", "--part-size", str(size)]
    return [sys.executable, "-m", "sarb.cli", *words, "--workers", str(WORKERS), *more]


def faults(run: Path, folder: Path, given: argparse.Namespace, cluster: int) -> None:
    """Label everything with both engines, the second one under kills; compare."""
    size = given.part_size
    plain = given.work / "local"
    torn = given.work / "ray"
    for old in (plain, torn):
        shutil.rmtree(old, ignore_errors=True)
    subprocess.run(command(run, folder, plain, size), check=True)
    rows: list[dict[str, Any]] = []
    kills = list(KILLS)
    begun = time.monotonic()
    starts = 0
    while True:
        words = command(run, folder, torn, size, "--engine", "ray", "--address", f"127.0.0.1:{PORT}")
        driver = subprocess.Popen(words)
        starts += 1
        for row in watch(driver, torn, begun, cluster):
            rows.append(row)
            if (
                kills
                and row["parts"] >= kills[0][1] * given.images / size
                and kill(kills[0][0], driver, cluster)
            ):
                row["killed"] = kills.pop(0)[0]
        if driver.returncode == 0:
            break
        assert driver.returncode == -signal.SIGKILL, driver.returncode
    write(given.out / "memory.csv", rows)
    write(given.out / "faults.csv", [verdict(plain, torn, folder, starts, rows)])
    plot(rows, given.out / "memory.png")


def watch(driver: subprocess.Popen[bytes], out: Path, begun: float, cluster: int) -> Iterator[dict[str, Any]]:
    """Memory of the driver and of each worker, and the parts that are there, every half second."""
    while driver.poll() is None:
        sizes = sorted(memory(process) for process in actors(cluster))
        yield {
            "seconds": round(time.monotonic() - begun, 1),
            "parts": len(list(out.glob("part-*"))),
            "driver_pid": driver.pid,
            "driver_mb": memory(psutil.Process(driver.pid)),
            "workers": len(sizes),
            "workers_mb": " ".join(map(str, sizes)),
            "killed": "",
        }
        time.sleep(0.5)


def actors(cluster: int) -> list[psutil.Process]:
    """Processes of the cluster that do chunks."""
    found = []
    for process in psutil.Process(cluster).children(recursive=True):
        with suppress(psutil.Error, IndexError):
            if process.cmdline()[0].startswith("ray::MapWorker(MapBatches(Actor)"):
                found.append(process)
    return found


def memory(process: psutil.Process) -> float:
    """Resident memory that no other process shares, in MB."""
    try:
        return round(process.memory_full_info().uss / 1e6, 1)
    except psutil.Error:
        return 0.0


def kill(what: str, driver: subprocess.Popen[bytes], cluster: int) -> bool:
    """Kill the driver, or one of two workers that are at work; False if there are not two."""
    if what == "driver":
        driver.kill()
        return True
    busy = actors(cluster)
    if len(busy) < WORKERS:
        return False
    busy[0].kill()
    return True


def verdict(plain: Path, torn: Path, folder: Path, starts: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Whether each image is there once, and both folders are the same byte for byte."""
    from pyarrow import parquet

    names = [
        name
        for part in sorted(torn.glob("part-*"))
        for name in parquet.read_table(part)["file_name"].to_pylist()
    ]
    images = [str(path) for path in sorted(folder.rglob("*.jpg"))]
    files = sorted(path.name for path in plain.iterdir())
    same = files == sorted(path.name for path in torn.iterdir())
    same = same and all((plain / name).read_bytes() == (torn / name).read_bytes() for name in files)
    return {
        "images": len(images),
        "rows": len(names),
        "each_image_once": sorted(names) == images,
        "same_files_as_local": same,
        "workers_killed": sum(row["killed"] == "worker" for row in rows),
        "drivers_killed": sum(row["killed"] == "driver" for row in rows),
        "drivers_started": starts,
    }


def plot(rows: list[dict[str, Any]], file: Path) -> None:
    """Memory over time, with the kills."""
    import matplotlib.pyplot as plt

    figure, (axes, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, height_ratios=(3, 1))
    seconds = [row["seconds"] for row in rows]
    axes.plot(seconds, [row["driver_mb"] for row in rows], label="driver")
    for place in range(WORKERS):
        sizes = [([*map(float, row["workers_mb"].split())] + [np.nan] * WORKERS)[place] for row in rows]
        axes.plot(seconds, sizes, ".", markersize=3, label=f"worker, {'smaller' if place == 0 else 'larger'}")
    for row in rows:
        if row["killed"]:
            axes.axvline(row["seconds"], color="0.6", linestyle=":")
            axes.text(
                row["seconds"],
                axes.get_ylim()[1],
                f"{row['killed']} killed ",
                rotation=90,
                va="top",
                ha="right",
            )
    axes.set(ylabel="memory of its own, MB", ylim=(0, None))
    axes.legend(loc="lower right")
    below.plot(seconds, [row["parts"] for row in rows])
    below.set(xlabel="seconds", ylabel="parts")
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def speed(run: Path, folder: Path, given: argparse.Namespace, cluster: subprocess.Popen[bytes]) -> None:
    """Both engines in turn, on the same first images."""
    from sarb import bulk

    images = sorted(folder.iterdir())[: given.timed // 1000]
    rows = []
    for number in range(given.rounds):
        for engine in ("local", "ray") if number % 2 == 0 else ("ray", "local"):
            out = given.work / f"timed-{engine}"
            shutil.rmtree(out, ignore_errors=True)
            seen: list[Any] = []
            before = daemons(cluster)
            options: dict[str, Any] = {"address": f"127.0.0.1:{PORT}"} if engine == "ray" else {}
            done = bulk.predict(
                run,
                images,
                out,
                engine=engine,
                workers=WORKERS,
                part_size=given.part_size,
                watch=seen.append,
                **options,
            )
            ends = sorted(path.stat().st_mtime for path in out.glob("part-*"))
            first = 2 * WORKERS - 1
            cpu = sum(part.cpu_seconds for part in seen)
            row = {
                "round": number + 1,
                "engine": engine,
                "images": done.images,
                "images_per_second": (len(ends) - 1 - first) * given.part_size / (ends[-1] - ends[first]),
                "images_per_cpu_second": done.images / cpu,
                "other_cpu_seconds": daemons(cluster) - before if engine == "ray" else 0.0,
            }
            rows.append(
                {name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}
            )
            print(rows[-1], flush=True)
    write(given.out / "speed.csv", rows)


def daemons(cluster: subprocess.Popen[bytes]) -> float:
    """Processor time of Ray's own processes, without those that do chunks."""
    total = 0.0
    for process in psutil.Process(cluster.pid).children(recursive=True):
        try:
            if not process.cmdline()[0].startswith("ray::MapWorker"):
                times = process.cpu_times()
                total += times.user + times.system
        except (psutil.Error, IndexError):
            continue
    return total


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write a table."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
