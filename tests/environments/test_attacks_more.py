"""More attacks on faces: rewards forged on the way to the verifier, numbers that are none, and folders and packages that are too much."""

from __future__ import annotations

import io
import tarfile
import time

import pytest

from inspector.environments import graders, http_verifier, trees
from inspector.environments.harbor import rewards
from inspector.environments.harbor.folder import read_folder, read_folders
from inspector.environments.protocol import Kind, Script, Trouble, Unreadable
from inspector.packing import unpack

SEPARATE = 'schema_version = "1.4"\nartifacts = ["/app/sum.txt"]\n[verifier]\ntimeout_sec = 60.0\nenvironment_mode = "separate"\n'
HUGE = "1" + "0" * 400
LYING_FIND = r"""
cat > /tmp/lie.c <<'END'
#include <string.h>
#include <unistd.h>
extern char *program_invocation_short_name;
__attribute__((constructor)) static void lie(void) {
    static const char said[] = "/opt/tools/bin/cat\0/app/sum.txt";
    if (strcmp(program_invocation_short_name, "find") == 0) { write(1, said, sizeof said); _exit(0); }
}
END
gcc -shared -fPIC -o /opt/lie.so /tmp/lie.c || exit 9
printf '#!/bin/sh\necho 42\n' > /opt/tools/bin/cat
chmod +x /opt/tools/bin/cat
echo 0 > /app/sum.txt
echo /opt/lie.so > /etc/ld.so.preload
"""


def test_a_separate_verifier_gets_nothing_but_the_artifacts_whatever_the_agent_s_programs_say(opened, folder):
    environment = opened(folder({"task.toml": SEPARATE}))
    (task,) = environment.tasks()
    grade = environment.grade(task, Script(LYING_FIND))
    if not grade.submission_ok:
        pytest.skip("no compiler in a box")
    assert grade.reward != 1.0


@pytest.mark.parametrize("shut", ["/logs/verifier", "/logs/verifier /logs /"])
def test_a_planted_reward_that_cannot_be_removed_is_not_paid_where_the_verifier_touches_it(opened, folder, shut):
    touching = "#!/bin/bash\nchmod -R u+rwX /logs\n"
    environment = opened(folder({"tests/test.sh": touching}))
    (task,) = environment.tasks()
    planted = f"mkdir -p /logs/verifier /logs/artifacts; echo 1 > /logs/verifier/reward.txt; chmod 444 /logs/verifier/reward.txt; chmod 555 {shut}"
    grade = environment.grade(task, Script(planted))
    assert (grade.reward, grade.trouble) == (None, Trouble.MALFORMED)


def test_a_script_that_is_no_text_is_graded_and_breaks_nothing(opened, folder):
    environment = opened(folder())
    (task,) = environment.tasks()
    assert environment.grade(task, Script("echo '\ud800'; echo 42 > sum.txt")).reward == 1.0
    assert environment.grade(task, Script("echo '\0'; echo 42 > sum.txt")).trouble is None


@pytest.mark.parametrize("text", [f'{{"reward": {HUGE}}}', f'{{"reward": 1, "x": -{HUGE}}}'])
def test_a_reward_that_no_float_holds_is_malformed(text):
    assert rewards._from_json(text.encode()).trouble is Trouble.MALFORMED


def test_the_mean_of_rewards_is_finite():
    assert rewards._from_json(b'{"a": 1e308, "b": 1e308}').reward == 1e308


def test_a_reward_that_no_float_holds_is_malformed_for_every_face():
    assert graders.read_answer({"reward": int(HUGE)}).trouble is Trouble.MALFORMED
    assert http_verifier._read(200, f'{{"reward": {HUGE}}}'.encode()).trouble is Trouble.MALFORMED


@pytest.mark.parametrize(
    "toml",
    [
        f"[environment]\ncpus = {HUGE}\n",
        f"[verifier]\ntimeout_sec = {'9' * 5000}\n",
        f"[metadata.inspector]\nexpect_nop_max = {HUGE}\n",
        "a = " + "[" * 3000,
        "[environment]\ncpus = 1e306\n",
        "[verifier]\ntimeout_sec = 1e300\n",
        "[environment]\nmemory_mb = 1e300\nstorage_mb = 1e300\n",
        'schema_version = "' + "9" * 5000 + '"\n',
    ],
)
def test_numbers_that_are_none_hide_no_other_task(opened, folder, tmp_path, toml):
    folder({"task.toml": toml}, name="all/bad")
    folder(name="all/good")
    environment = opened(tmp_path / "all")
    bad, good = environment.tasks()
    assert environment.grade(good, good.reference).reward == 1.0
    assert environment.grade(bad, bad.reference).trouble in (Trouble.NOT_BUILT, Trouble.REFUSED, None)


def test_a_dockerfile_of_empty_lines_is_read_at_once(folder):
    root = folder({"environment/Dockerfile": "FROM ubuntu\n" + "\n" * 60_000})
    began = time.process_time()
    assert read_folder(root).task().kind is Kind.STATE
    assert time.process_time() - began < 5


def test_folders_and_links_count_too(tmp_path):
    for number in range(30):
        (tmp_path / f"f{number}").mkdir()
    with pytest.raises(Unreadable, match="more than 20 files"):
        trees.read_tree(tmp_path, files=10)
    assert trees.read_tree(tmp_path, files=20).files == ()


def test_a_pipe_in_place_of_a_file_is_not_waited_for(folder):
    import os

    root = folder({"instruction.md": None})
    os.mkfifo(root / "instruction.md")
    assert "left out: instruction.md is no regular file" in read_folder(root).task().notes
    (root / "task.toml").unlink()
    os.mkfifo(root / "task.toml")
    with pytest.raises(Unreadable):
        read_folders(root)


def packed(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members:
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return io.BytesIO(out.getvalue())


def test_a_package_of_folders_in_folders_is_refused(tmp_path):
    for depth in (60, 3000):
        with pytest.raises(Unreadable):
            unpack(packed(("a/" * depth + "f", b"")), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_package_that_makes_more_folders_than_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("inspector.packing.TREE_FILES", 50)
    with pytest.raises(Unreadable, match="more than 50"):
        unpack(packed(*((f"{n}/" + "a/" * 20 + "f", b"") for n in range(10))), tmp_path)


def test_a_package_of_nothing_but_headers_of_headers_is_refused(tmp_path):
    one = tarfile.TarInfo("././@LongLink")
    one.type, one.size = tarfile.GNUTYPE_LONGNAME, 2
    block = one.tobuf(tarfile.GNU_FORMAT) + b"a\0" + b"\0" * 510
    with pytest.raises(Unreadable):
        unpack(io.BytesIO(block * 3000), tmp_path)
