# mypy: ignore-errors
# ruff: noqa: S102 -- a script that is only ever run inside a box
"""Runs one program to its end and then says the word: what a verifier does that calls `exec(code + tests)` and pays where nothing was raised."""

import os
import resource
import sys
import types


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # what the program prints is evidence, never an answer
    word, cpu_s, program = sys.stdin.buffer.read().split(b"\n", 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    limit = int(cpu_s)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    try:
        run(program.decode())
    except BaseException as error:  # an exit is a failure here, as for every verifier of this kind
        explain(program.decode(), error)
        sys.stderr.flush()
        os._exit(1)
    os.write(out, word)
    os._exit(0)


def run(program: str) -> None:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(program, "program.py", "exec", dont_inherit=True), module.__dict__)


def explain(program: str, error: BaseException) -> None:
    import linecache
    import traceback

    linecache.cache["program.py"] = (len(program), None, program.splitlines(True), "program.py")
    traceback.print_exception(type(error), error, error.__traceback__, limit=-3)


main()
