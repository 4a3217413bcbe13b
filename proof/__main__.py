"""`python -m proof [ARM …] [--seeds N]`: trains, prints a line a run, draws curves; exit code 1 where a pass line is missed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec

from proof.arms import ARMS, Line, overhead
from proof.curves import draw
from proof.house import House


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proof", description=__doc__)
    parser.add_argument("arms", nargs="*", help=", ".join(f"{arm.name}: {arm.asks}" for arm in ARMS))
    parser.add_argument("--seeds", type=int, help="of each arm; by default as many as it needs")
    parser.add_argument("--output", type=Path, help="a folder for the curves and what was measured")
    asked = parser.parse_args()
    unknown = set(asked.arms) - {arm.name for arm in ARMS}
    if unknown:
        parser.error(f"no such arm: {', '.join(sorted(unknown))}")
    chosen = [arm for arm in ARMS if not asked.arms or arm.name in asked.arms]
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="inspector-proof-") as made:
        folder = asked.output or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        with House(folder) as house:
            for arm in chosen:
                for seed in range(asked.seeds or arm.seeds):
                    for line in arm.run(house, seed):
                        lines.append(line)
                        print("ok    " if line.passed else "MISSED", f"{line.arm}: {line.what}", flush=True)
        print("overhead:", overhead(lines))
        if asked.output:
            draw(lines, folder)
            (folder / "told.json").write_bytes(msgspec.json.encode([line._asdict() for line in lines]))
    return 0 if all(line.passed for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
