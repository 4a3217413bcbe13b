"""Stands in for pip where there is no network: what is importable already is installed, everything else is not."""

import importlib.metadata
import re
import sys

TAKES_VALUE = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target", "--python", "-p", "-c", "--constraint", "--prefix", "--root"}


def wanted(arguments: list[str]) -> list[str]:
    names: list[str] = []
    rest = iter(arguments)
    for each in rest:
        if each in ("-r", "--requirement"):
            names += lines(next(rest, ""))
        elif each.startswith("--requirement="):
            names += lines(each.partition("=")[2])
        elif each in ("-e", "--editable"):
            names.append(next(rest, "."))
        elif each in TAKES_VALUE:
            next(rest, None)
        elif not each.startswith("-"):
            names.append(each)
    return names


def lines(path: str) -> list[str]:
    with open(path) as file:
        kept = [line.split(" #")[0].split(";")[0].strip() for line in file]
    return [line for line in kept if line and not line.startswith(("#", "-"))]


def missing(requirement: str) -> str | None:
    found = re.fullmatch(r"([A-Za-z0-9][\w.-]*)(\[[^\]]*\])?\s*(.*)", requirement)
    if not found or found[3].startswith(("/", "@")) or "/" in requirement:
        return f"{requirement} (only packages that are here already)"
    try:
        here = importlib.metadata.version(found[1])
    except importlib.metadata.PackageNotFoundError:
        return requirement
    if found[3] and here not in found[3]:
        sys.stderr.write(f"stand-in: {found[1]} {here} in place of {requirement}\n")
    return None


def main(arguments: list[str]) -> None:
    if arguments[:1] in (["--version"], ["-V"]):
        say("pip 24.0 (a stand-in without network)")
    elif arguments[:1] in (["freeze"], ["list"]):
        say("\n".join(sorted(f"{each.name}=={each.version}" for each in importlib.metadata.distributions())))
    elif arguments[:1] == ["install"]:
        install(wanted(arguments[1:]))
    elif arguments[:1] not in (["config"], ["cache"], ["check"]):
        sys.exit(f"stand-in: no pip {' '.join(arguments[:1])} here")


def install(names: list[str]) -> None:
    lacking = [each for each in map(missing, names) if each and each not in ("pip", "setuptools", "wheel", "uv")]
    if lacking:
        sys.exit(f"ERROR: no network here, and not installed: {', '.join(lacking)}")
    say("Requirement already satisfied")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


main(sys.argv[1:])
