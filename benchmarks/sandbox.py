"""What a box costs, as multiples of starting a process in the same seconds: `python -m benchmarks.sandbox`. Prints, writes nothing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from inspector.sandbox.opening import open_backend
from inspector.sandbox.protocol import Backend, Layer

ROUNDS = 60
FILES, FILE_BYTES = 1000, 20_000
SECONDS, THREADS = 5.0, (1, 2, 3)


def fork_and_exec() -> None:
    """The least that any sandbox costs."""
    subprocess.run(["/bin/true"], check=True)


def life(backend: Backend, layers: Sequence[Layer] = (), command: Sequence[str] = ("true",)) -> None:
    """Made, used once, gone."""
    with backend.create(layers) as box:
        if not box.run(command).ok:
            raise SystemExit("a box failed")


def thousand_files(backend: Backend) -> Layer:
    """A layer like a small task's."""
    script = f"import os\nos.makedirs('/work/deep')\nfor n in range({FILES}): open(f'/work/{{n}}', 'wb').write(os.urandom({FILE_BYTES}))"
    with backend.create() as box:
        box.run(["python3", "-c", script])
        return box.snapshot()


def interleaved(**deeds: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of each deed, one of each per round, so that what else the machine does meets all alike."""
    taken: dict[str, list[float]] = {name: [] for name in deeds}
    for _ in range(ROUNDS):
        for name, deed in deeds.items():
            began = time.perf_counter()
            deed()
            taken[name].append(time.perf_counter() - began)
    return taken


def per_second(deed: Callable[[], object], threads: int) -> float:
    """How often it is done by so many threads."""
    ends = time.perf_counter() + SECONDS

    def again(_: int) -> int:
        done = 0
        while time.perf_counter() < ends:
            deed()
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(again, range(threads))) / SECONDS


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        backend = open_backend(Path(folder))
        if missing := backend.capabilities.missing:
            sys.exit(f"this machine gives no box: {missing}")
        layer = thousand_files(backend)
        with backend.create(session=True) as session:
            session.run(["true"])
            taken = interleaved(
                fork_and_exec=fork_and_exec,
                life=lambda: life(backend),
                restore_of_1000_files=lambda: life(backend, [layer], ["test", "-f", "/work/999"]),
                command_in_a_session=lambda: session.run(["true"]),
            )
        table(taken)
        for threads in THREADS:
            least, most = per_second(fork_and_exec, threads), per_second(lambda: life(backend), threads)
            print(f"{threads} threads: {most:6.0f} lives/s, {least:6.0f} fork+exec/s, 1/{least / most:.1f}")


def table(taken: dict[str, list[float]]) -> None:
    """Median and least in ms, and as multiples of fork+exec."""
    base = taken["fork_and_exec"]
    print(f"{'':24}{'median ms':>10}{'x':>7}{'min ms':>10}{'x':>7}")
    for name, values in taken.items():
        print(f"{name:24}{median(values) * 1e3:10.2f}{median(values) / median(base):7.1f}{min(values) * 1e3:10.2f}{min(values) / min(base):7.1f}")


if __name__ == "__main__":
    main()
