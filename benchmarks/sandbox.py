"""What a box costs, as multiples of starting a process in the same seconds: `python -m benchmarks.sandbox`. Prints, writes nothing.

The time is what a caller waits for a box that is made, runs one command and is gone. "Ahead" is with a box of that kind waiting, as after a
command that took longer than the making of a box; that making is not in the time. It is in the CPU time, which is all that is used
by us and in the groups of the boxes, those made ahead and never used too; what the kernel does later on its own account is in neither.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

from inspector.sandbox.bubblewrap import Bubblewrap
from inspector.sandbox.cgroups import Group, here
from inspector.sandbox.protocol import Backend, Layer
from inspector.sandbox.stage import owner_name

ROUNDS, LIVES = 60, 40
FILES, FILE_BYTES = 1000, 20_000
SECONDS, THREADS = 5.0, (1, 2, 3)
SETTLE_S = 0.5  # for a box that is made ahead


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


def interleaved(settle: Callable[[], None], deeds: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of each deed, one of each per round, so that what else the machine does meets all alike."""
    taken: dict[str, list[float]] = {name: [] for name in deeds}
    for _ in range(ROUNDS):
        for name, deed in deeds.items():
            settle()
            began = time.perf_counter()
            deed()
            taken[name].append(time.perf_counter() - began)
    return taken


def settle(backend: Bubblewrap, kinds: int) -> None:
    """Until a box of each kind waits, or none is made."""
    ends = time.monotonic() + SETTLE_S
    while backend.waiting() < kinds and time.monotonic() < ends:
        time.sleep(0.001)


def cpu_s() -> float:
    """CPU time of this process so far, and of all boxes: what started them is counted in their groups, or as a child."""
    groups = list(here().homes["cpuacct" if "cpuacct" in here().homes else "cpu"].folder.glob(f"{owner_name()}-*"))
    return time.process_time() + sum(used(path) for path in groups)


def used(folder: Path) -> float:
    """CPU time of one group."""
    name = "cpuacct" if (folder / "cpuacct.usage").exists() else "cpu"
    return Group({name: folder}, set()).cpu_s()


def children_s() -> float:
    """CPU time of children that ended."""
    about = resource.getrusage(resource.RUSAGE_CHILDREN)
    return about.ru_utime + about.ru_stime


def cpu_of(deeds: dict[str, Callable[[], object]]) -> dict[str, float]:
    """CPU seconds of each deed, done many times over."""
    taken = dict.fromkeys(deeds, 0.0)
    for name, deed in deeds.items():
        clock = (lambda: time.process_time() + children_s()) if deed is fork_and_exec else cpu_s
        deed()
        began = clock()
        for _ in range(LIVES):
            deed()
        taken[name] = (clock() - began) / LIVES
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
        plain, ahead = Bubblewrap(Path(folder), ahead=False), Bubblewrap(Path(folder))
        if missing := plain.capabilities.missing or ahead.capabilities.missing:
            sys.exit(f"this machine gives no box: {missing}")
        layer = thousand_files(plain)
        restore = ["test", "-f", "/work/999"]
        deeds: dict[str, Callable[[], object]] = {
            "fork_and_exec": fork_and_exec,
            "life": partial(life, plain),
            "life, ahead": partial(life, ahead),
            "restore of 1000 files": partial(life, plain, [layer], restore),
            "the same, ahead": partial(life, ahead, [layer], restore),
        }
        with plain.create(session=True) as session:
            session.run(["true"])
            for _ in range(2):
                life(ahead), life(ahead, [layer], restore)
            table(interleaved(partial(settle, ahead, 2), {**deeds, "command in a session": lambda: session.run(["true"])}), cpu_of(deeds))
        for threads in THREADS:
            least, *most = (per_second(deed, threads) for deed in (fork_and_exec, partial(life, plain), partial(life, ahead)))
            print(
                f"{threads} threads: {least:6.0f} fork+exec/s, "
                + ", ".join(f"{n:4.0f} lives{name}/s 1/{least / n:.1f}" for n, name in zip(most, ("", " ahead"), strict=True))
            )


def table(taken: dict[str, list[float]], cpu: dict[str, float]) -> None:
    """Median and least in ms and CPU ms, each as multiples of fork+exec."""
    base = taken["fork_and_exec"]
    print(f"{'':24}{'median ms':>10}{'x':>7}{'min ms':>10}{'x':>7}{'CPU ms':>10}{'x':>7}")
    for name, values in taken.items():
        spent = f"{cpu[name] * 1e3:10.2f}{cpu[name] / cpu['fork_and_exec']:7.1f}" if name in cpu else ""
        print(f"{name:24}{median(values) * 1e3:10.2f}{median(values) / median(base):7.1f}{min(values) * 1e3:10.2f}{min(values) / min(base):7.1f}{spent}")


if __name__ == "__main__":
    main()
