"""Declarations in files: what is taken, and how the mistakes in them are told."""

import json

import pytest

from inspector.local.declared import BadDeclaration, read, read_file

GOOD = "id: acme/terminal\nversion: '1'\nreward: {min: 0, max: 1, paid_at: 1}\ntasks:\n  hard: {reward: {max: 2}, reference_tests: 4}\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="d.yaml"):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    return write


def test_one_or_a_list_in_yaml_or_json(write):
    one = read_file(write(GOOD))
    assert one == read_file(write([{"id": "acme/terminal", "version": "1", "reward": {"min": 0, "max": 1, "paid_at": 1},
                                    "tasks": {"hard": {"reward": {"max": 2}, "reference_tests": 4}}}], "d.json"))  # fmt: skip


def test_a_task_overrides_what_it_sets_and_nothing_else(write):
    declared = read([write(GOOD)])
    hard, easy = declared.of("acme/terminal", "1", "hard"), declared.of("acme/terminal", "1", "easy")
    assert (hard.reward_range, hard.reference_tests, hard.reward.paid_at) == ((0, 2), 4, 1)
    assert (easy.reward_range, easy.reference_tests) == ((0, 1), None)
    assert not declared.of("acme/terminal", "2", "easy").declared


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {id: a/b, version: '1', reward: {max: high}}", r"\$\[0\]\.reward\.max: .*'high'"),
        ("{id: a/b, version: '1', reward: {max: high}}", r"\$\.reward\.max: .*'high'"),
        ("{id: a/b, version: 7}", r"\$\.version: .*7.*quotes"),
        ("{id: a/b}", r"\$: .*missing.*version"),
        ("{id: a/b, version: '1', rewards: {}}", r"\$: .*unknown.*rewards"),
        ("{id: ab, version: '1'}", r"\$\.id: 'ab' is not of the form team/name"),
        ("{id: a/b, version: '1', reward: {min: 2, max: 1}}", r"\$\.reward\.min: 2 is above reward\.max 1"),
        ("{id: a/b, version: '1', reward: {min: .nan}}", r"\$\.reward\.min: .*nan"),
        ("{id: a/b, version: '1', reward: {min: 1, max: 3}, tasks: {t: {reward: {max: 0}}}}", r"\$\.tasks\.t\.reward\.min: 1 is above"),
        ("{id: a/b, version: '1', tasks: {t: {limits: {steps: 0}}}}", r"\$\.tasks.*: "),
        ("{id: a/b, version: '1', id: c/d}", "'id' stands twice"),
        ("- {id: a/b, version: '1'}\n- {id: a/b, version: '1'}", "declared a second time"),
        ("{", "d.yaml"),
        ("", "d.yaml"),
        ("!!python/object/apply:os.system [id]", "d.yaml"),
        ("{id: a/b, version: '1', protected: [\"\\e[2J\\u202e\", 3]}", "protected"),
    ],
)
def test_a_mistake_is_told_with_its_file_path_and_value(write, text, said):
    with pytest.raises(BadDeclaration, match=said) as caught:
        read([write(text)])
    assert "d.yaml" in str(caught.value)
    assert not set(str(caught.value)) & set("\x1b\u202e")


def test_aliases_cannot_make_it_explode(write):
    lines = ["a0: &a0 [x, x]"] + [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 30)]
    with pytest.raises(BadDeclaration):
        read([write("id: a/b\nversion: '1'\nprotected: *a29\n" + "\n".join(lines))])
    with pytest.raises(BadDeclaration):
        read([write("\n".join(lines) + "\nid: a/b\nversion: '1'\nprotected: *a29\n")])
