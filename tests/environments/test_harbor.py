"""Harbor task folders: what is replayed, what each phase sees, and where a reward may come from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from inspector.environments.protocol import Conditions, Final, Kind, Script, Text, Trouble, Unreadable

HARBOR = Path(__file__).parents[1] / "fixtures" / "harbor"
SHARED_TOML = 'schema_version = "1.4"\n[verifier]\ntimeout_sec = 60.0\n'
SEPARATE_TOML = 'schema_version = "1.4"\nartifacts = ["/app/sum.txt"]\n[verifier]\ntimeout_sec = 60.0\nenvironment_mode = "separate"\n'


@pytest.fixture
def grade(opened, folder):
    """Grades a script, or the reference, on a task folder with other files."""

    def of(script=None, conditions=None, **files):
        environment = opened(folder(files))
        (task,) = environment.tasks()
        return environment.grade(task, task.reference if script is None else Script(script), conditions or Conditions())

    return of


def test_the_reference_is_paid_and_nothing_is_not(opened, folder):
    environment = opened(folder())
    (task,) = environment.tasks()
    assert (task.id, task.kind, task.prompt[:9], task.notes) == ("sum", Kind.STATE, "Write the", ())
    paid = environment.grade(task, task.reference)
    assert (paid.reward, paid.submission_ok, paid.trouble) == (1.0, True, None)
    assert paid.cpu_s > 0
    assert environment.grade(task, Script("")).reward == 0.0
    assert environment.grade(task, Script("echo 41 > sum.txt; exit 3")).submission_ok is False


def test_a_layer_that_was_left_before_is_graded_as_it_is(backend, opened, folder):
    environment = opened(folder())
    (task,) = environment.tasks()
    with backend.create() as box:
        box.write("/app/sum.txt", b"42\n")
        left = box.snapshot()
    grade = environment.grade(task, Final((left,)))
    assert (grade.reward, grade.submission_ok) == (1.0, None)


def test_tests_and_solution_are_seen_by_those_alone_who_may(opened, folder):
    count = 'echo "{\\"seen\\": $(ls /app/seen | wc -l), \\"reward\\": 0}" > /logs/verifier/reward.json'
    files = {
        "tests/test.sh": f"#!/bin/bash\nls -d /solution /tests\n{count}\n",
        "solution/solve.sh": "mkdir /app/seen\ncp /solution/* /app/seen\n",
        "solution/more.txt": "x",
    }
    environment = opened(folder(files))
    (task,) = environment.tasks()
    reference = environment.grade(task, task.reference)
    assert reference.components["seen"] == 2
    assert "/tests" in reference.evidence
    assert "'/solution': No such file" in reference.evidence
    agent = environment.grade(task, Script("mkdir /app/seen; for f in /tests /solution; do test -e $f && touch /app/seen/$(basename $f); done; true"))
    assert agent.components["seen"] == 0


@pytest.mark.parametrize(
    "plant",
    [
        "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
        "mkdir -p /logs/verifier; echo '{\"reward\": 1}' > /logs/verifier/reward.json",
        "mkdir -p /logs/verifier; ln -s /app/paid /logs/verifier/reward.txt; echo 1 > /app/paid",
        "mkdir -p /logs/verifier/reward.txt /logs/verifier/reward.json/x",
        "mkdir -p /logs; ln -s /app /logs/verifier; echo 1 > /app/reward.txt",
        "while sleep 0.01; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; done & sleep 0.2",
    ],
)
@pytest.mark.parametrize("toml", [SHARED_TOML, SEPARATE_TOML], ids=["shared", "separate"])
def test_a_planted_reward_is_never_read(opened, folder, plant, toml):
    environment = opened(folder({"task.toml": toml, "tests/test.sh": "#!/bin/bash\necho quiet\n"}))
    (task,) = environment.tasks()
    grade = environment.grade(task, Script(plant))
    assert grade.reward is None
    assert grade.trouble in (Trouble.MALFORMED, Trouble.REFUSED)


def test_a_shared_verifier_meets_what_was_left_and_a_separate_one_the_artifacts_alone(opened, folder):
    shim = "mkdir -p /tests; echo 42 > sum.txt; echo bad > /app/extra; printf '#!/bin/sh\\necho 42\\n' > $(dirname $(command -v python3))/cat"
    checks = '#!/bin/bash\necho "{\\"extra\\": $(ls /app/extra | wc -l), \\"sum\\": $(/bin/cat /app/sum.txt | wc -l)}" > /logs/verifier/reward.json\n'
    for toml, extra in ((SHARED_TOML, 1.0), (SEPARATE_TOML, 0.0)):
        environment = opened(folder({"task.toml": toml, "tests/test.sh": checks}, name=f"task{int(extra)}"))
        (task,) = environment.tasks()
        assert environment.grade(task, Script(shim)).components == {"extra": extra, "sum": 1.0}


def test_a_separate_verifier_may_have_an_image_of_its_own(opened, folder):
    files = {
        "task.toml": SEPARATE_TOML,
        "tests/Dockerfile": "FROM debian:12-slim\nWORKDIR /judge\nCOPY . /tests\nRUN echo 42 > wanted\n",
        "tests/test.sh": "#!/bin/bash\ncmp wanted /app/sum.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n",
    }
    environment = opened(folder(files))
    (task,) = environment.tasks()
    assert environment.grade(task, task.reference).reward == 1.0
    assert environment.grade(task, Script("echo 41 > /app/sum.txt")).reward == 0.0


@pytest.mark.parametrize(
    ("written", "reward", "components"),
    [
        ("echo 0.25 > /logs/verifier/reward.txt", 0.25, {"reward": 0.25}),
        ('echo \'{"reward": 1, "speed": 0.5}\' > /logs/verifier/reward.json', 1.0, {"reward": 1.0, "speed": 0.5}),
        ('echo \'{"a": 1, "b": 0}\' > /logs/verifier/reward.json', 0.5, {"a": 1.0, "b": 0.0}),
        ("echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 0}' > /logs/verifier/reward.json", 0.0, {"reward": 0.0}),
        ("echo nan > /logs/verifier/reward.txt", None, {}),
        ("echo yes > /logs/verifier/reward.txt", None, {}),
        (": > /logs/verifier/reward.txt", None, {}),
        ("echo '{\"reward\": 1e999}' > /logs/verifier/reward.json", None, {}),
        ('echo \'{"reward": "1"}\' > /logs/verifier/reward.json', None, {}),
        ("echo '[1]' > /logs/verifier/reward.json", None, {}),
        ("head -c 200000 /dev/zero > /logs/verifier/reward.txt", None, {}),
        ("ln -s /etc/hostname /logs/verifier/reward.txt", None, {}),
        ("exit 1", None, {}),
    ],
)
def test_only_finite_numbers_are_rewards(grade, written, reward, components):
    given = grade(**{"tests/test.sh": f"#!/bin/bash\n{written}\n"})
    assert (given.reward, given.components) == (reward, components)
    assert given.trouble is (None if reward is not None else Trouble.MALFORMED)


def test_a_verifier_that_never_ends_is_stopped(grade):
    given = grade("", Conditions(timeout_s=0.5), **{"tests/test.sh": "#!/bin/bash\nsleep 60\n"})
    assert (given.reward, given.trouble) == (None, Trouble.TIMED_OUT)


@pytest.mark.parametrize(
    ("dockerfile", "said"),
    [
        ("FROM node:20-slim\n", "base image 'node:20-slim'"),
        ("FROM python:3.11-slim AS a\nFROM python:3.11-slim\nCOPY --from=a /x /x\n", "--from"),
        ("FROM python:3.11-slim\nFROM debian:12\n", "more than one stage"),
        ("FROM python:3.11-slim\nRUN curl -O https://example.org/x || true\n", "RUN needs curl"),
        ("FROM python:3.11-slim\nRUN apt-get update && apt-get install -y no-such-tool\n", "no-such-tool"),
        ("FROM python:3.11-slim\nRUN pip install no-such-package-here\n", "no-such-package-here"),
        ("FROM python:3.11-slim\nUSER nobody\n", "USER nobody"),
        ("FROM python:3.11-slim\nCOPY missing.txt /app/\n", "no such file"),
        ("FROM python:3.11-slim\nCOPY ../solution /app/\n", "no such file"),
        ("FROM python:3.11-slim\nADD https://example.org/x /x\n", "ADD from an address"),
        ("FROM python:3.11-slim\nRUN exit 7\n", "exited 7"),
        ("FROM python:3.11-slim\nHELLO\n", "'HELLO' is no instruction"),
        ("RUN true\n", "RUN before FROM"),
        ("", "no FROM"),
    ],
)
def test_what_cannot_be_replayed_is_said_and_no_task_is_blamed(grade, dockerfile, said):
    given = grade(**{"environment/Dockerfile": dockerfile})
    assert (given.reward, given.trouble) == (None, Trouble.NOT_BUILT)
    assert said in given.evidence


REPLAYED = """# syntax=docker/dockerfile:1
ARG TAG=3.11
FROM python:${TAG}-slim AS base
ARG COLOUR="blue"
ENV GREETING="hello world" \\
    # a comment inside
    NAME=${COLOUR:-red}
ENV OLD style value
LABEL a=b
WORKDIR /work
WORKDIR sub
COPY data/ ./data
COPY --chmod=755 numbers.txt other.txt list/
COPY *.csv /tables/
ADD ["numbers.txt", "/json.txt"]
RUN pip install --no-cache-dir pytest && \\
    apt-get update && apt-get install -y --no-install-recommends bash ca-certificates && rm -rf /var/lib/apt/lists/*
RUN ["/bin/sh", "-c", "echo exec > exec.txt"]
RUN <<EOF
echo "$GREETING $NAME" > said.txt
EOF
RUN python3 - <<'PY' > sum.txt
print(40 + 2)
PY
COPY <<EOT /work/made.txt
made
EOT
SHELL ["/bin/bash", "-c"]
RUN [[ -f said.txt ]] && echo "${COLOUR^^}" > upper.txt
USER root
EXPOSE 80
CMD ["bash"]
"""


def test_a_dockerfile_is_replayed(grade):
    wanted = {
        "said.txt": "hello world blue",
        "sum.txt": "42",
        "upper.txt": "BLUE",
        "exec.txt": "exec",
        "made.txt": "made",
        "data/deep/x": "x",
        "list/other.txt": "other",
        "/tables/a.csv": "a",
        "/json.txt": "40",
    }
    files = {
        "environment/Dockerfile": REPLAYED,
        "environment/data/deep/x": "x",
        "environment/other.txt": "other",
        "environment/a.csv": "a",
        "environment/.dockerignore": "*.log\ndata/ignored\n",
        "environment/data/ignored/y": "y",
        "environment/data/x.log": "y",
        "tests/test.sh": "#!/bin/bash\n"
        + "\n".join(
            f"grep -qF '{text}' /work/sub/{path} || grep -qF '{text}' {path} || grep -qF '{text}' /work/{path} || echo lost {path} >&2"
            for path, text in wanted.items()
        )
        + '\ntest -x list/numbers.txt && [ "$OLD" = "style value" ] && [ ! -e data/ignored ] && echo 1 > /logs/verifier/reward.txt\n',
    }
    given = grade("", **files)
    assert "lost" not in given.evidence
    assert given.reward == 1.0, given.evidence


def test_a_verifier_that_fetches_its_tools_is_stood_in_for(opened, folder):
    test = (
        "#!/bin/bash\napt-get update\napt-get install -y curl\ncurl -LsSf https://astral.sh/uv/0.7.13/install.sh | sh\nsource $HOME/.local/bin/env\n"
        "uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_sum.py -rA\n"
        "if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    )
    check = "from pathlib import Path\n\n\ndef test_sum():\n    assert Path('/app/sum.txt').read_text().split() == ['42']\n"
    environment = opened(folder({"tests/test.sh": test, "tests/test_sum.py": check}))
    (task,) = environment.tasks()
    assert "apt-get, curl, uvx are stood in for" in task.notes[0]
    assert environment.grade(task, task.reference).reward == 1.0
    assert environment.grade(task, Script("echo 41 > sum.txt")).reward == 0.0


def test_a_solution_that_starts_a_service_is_not_blamed(grade):
    given = grade(**{"solution/solve.sh": "nohup sleep 100 &\n"})
    assert (given.reward, given.trouble) == (None, Trouble.REFUSED)
    assert "processes" in given.evidence


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[environment]\ngpus = 1\n", "accelerator"),
        ('[[steps]]\nname = "one"\n', "several steps"),
        ('[agent]\nuser = "worker"\n', "agent.user"),
        ('[environment]\nos = "windows"\n', "windows"),
    ],
)
def test_what_no_box_can_give_is_not_built(grade, toml, said):
    given = grade(**{"task.toml": toml})
    assert given.trouble is Trouble.NOT_BUILT
    assert said in given.evidence


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (b"a = \xff", "task.toml"),
        ("[agent\n", "task.toml"),
        ('[agent]\ntimeout_sec = "long"\n', "agent.timeout_sec is 'long', not a number"),
        ("[agent]\ntimeout_sec = nan\n", "agent.timeout_sec"),
        ('verifier = "x"\n', "verifier is 'x', not a table"),
        ('[verifier]\nenvironment_mode = "both"\n', "verifier.environment_mode is 'both'"),
        ('artifacts = ["../etc"]\n', "artifacts is '../etc'"),
        ("a = " + "[" * 5000, "task.toml"),
    ],
)
def test_a_broken_task_toml_is_named(opened, folder, toml, said):
    with pytest.raises(Unreadable, match=said):
        opened(folder({"task.toml": toml}))


def test_unknown_fields_are_listed(opened, folder):
    (task,) = opened(folder({"task.toml": 'schema_version = "1.4"\nnew = 1\n[agent]\nfoo = 2\n'})).tasks()
    assert task.notes == ("unknown fields in task.toml: agent.foo, new",)


def test_one_bad_folder_does_not_hide_the_others(opened, folder, tmp_path):
    folder(name="all/good")
    folder({"task.toml": "["}, name="all/deeper/bad")
    environment = opened(tmp_path / "all")
    bad, good = environment.tasks()
    assert (bad.id, good.id) == ("deeper/bad", "good")
    assert "task.toml" in bad.notes[0]
    assert environment.grade(bad, Script("")).trouble is Trouble.NOT_BUILT
    assert environment.grade(good, good.reference).reward == 1.0


def test_an_instruction_without_end_is_one_unread_task(opened, folder, tmp_path):
    folder({"instruction.md": "x" * (5 << 20)}, name="all/long")
    folder(name="all/sound")
    environment = opened(tmp_path / "all")
    long, sound = environment.tasks()
    assert (long.read, sound.read) == (False, True)
    assert environment.grade(long, Script("")).trouble is Trouble.NOT_BUILT


def test_more_processors_than_there_are_are_no_refusal(grade):
    assert grade(**{"task.toml": "[environment]\ncpus = 64\nmemory_mb = 4096\nstorage_mb = 20480\n"}).reward == 1.0


HUNGRY = "#!/bin/bash\n{}\nexec python3 -c 'x = bytearray(400 << 20)'\n"


@pytest.mark.parametrize(
    ("said", "reward"),
    [("", 0.0), ("echo 0.5 > /logs/verifier/reward.txt", 0.5)],
)
def test_what_reaches_the_tasks_own_limit_on_memory_has_failed_unless_its_verifier_said_otherwise(grade, said, reward):
    found = grade(**{"task.toml": "[environment]\nmemory_mb = 128\n", "tests/test.sh": HUNGRY.format(said)})
    assert (found.reward, found.trouble) == (reward, None)
    assert said or "128 MiB, which is the task's own limit" in found.evidence


def test_links_out_of_the_folder_are_left_out(opened, folder):
    root = folder({"environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\nCOPY . .\n"})
    os.symlink("/etc/passwd", root / "environment" / "passwd")
    os.symlink(root, root / "environment" / "loop")
    environment = opened(root)
    (task,) = environment.tasks()
    assert sum("is a link" in note for note in task.notes) == 2
    assert environment.grade(task, Script("cat passwd > sum.txt")).submission_ok is False


def test_versions_speak_of_content(opened, folder):
    def versions(*arguments, **named):
        environment = opened(folder(*arguments, **named))
        return environment.version, environment.verifier_digest

    plain, reworded, judged = versions(), versions({"instruction.md": "Sum.\n"}), versions({"tests/test.sh": "#!/bin/bash\n"})
    assert plain[1] == reworded[1] != judged[1]
    assert len({plain[0], reworded[0], judged[0]}) == 3
    assert versions({"tests/test.sh": None}, name="other") != plain


def test_a_text_is_no_state(opened, folder):
    environment = opened(folder())
    (task,) = environment.tasks()
    assert environment.grade(task, Text("42")).trouble is Trouble.REFUSED


@pytest.mark.slow
def test_known_task_folders_are_graded_as_known(opened):
    environment = opened(HARBOR)
    expected = json.loads((HARBOR / "expected.json").read_text())
    for task in environment.tasks():
        outcomes = expected[task.id]["outcomes"]
        reference, nothing = environment.grade(task, task.reference), environment.grade(task, Script(""))
        assert (reference.trouble is Trouble.NOT_BUILT) == (outcomes == ["not_reproduced"]), task.id
        assert reference.reward != 1.0 or "unsolvable" not in outcomes, task.id
        assert nothing.reward != 1.0 or "trivially_passable" in outcomes, task.id
