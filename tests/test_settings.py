"""Settings are read once, and a bad one names its variable."""

from __future__ import annotations

import pytest

from inspector.settings import BadSetting, Settings, load


def test_an_empty_environment_gives_the_defaults():
    assert load({}) == Settings()


def test_numbers_and_limits_are_read_from_text():
    chosen = load({"INSPECTOR_WORKERS": "7", "INSPECTOR_LEASE_S": "2.5", "INSPECTOR_LIMIT_BODY_BYTES": "1024"})
    assert (chosen.workers, chosen.lease_s, chosen.limits.body_bytes) == (7, 2.5, 1024)


def test_a_bad_value_is_named_with_its_variable():
    with pytest.raises(BadSetting, match=r"INSPECTOR_WORKERS='many'"):
        load({"INSPECTOR_WORKERS": "many"})


def test_a_secret_may_stand_in_a_file(tmp_path):
    secret = tmp_path / "database_url"
    secret.write_text("postgresql://inspector:s3cret@postgres/inspector\n")
    assert load({"INSPECTOR_DATABASE_URL_FILE": str(secret)}).database_url == "postgresql://inspector:s3cret@postgres/inspector"


def test_a_variable_goes_before_its_file(tmp_path):
    assert load({"INSPECTOR_REDIS_URL": "redis://here", "INSPECTOR_REDIS_URL_FILE": str(tmp_path / "absent")}).redis_url == "redis://here"


def test_a_secret_that_cannot_be_read_names_its_file(tmp_path):
    with pytest.raises(BadSetting, match=r"INSPECTOR_DATABASE_URL_FILE=.*absent"):
        load({"INSPECTOR_DATABASE_URL_FILE": str(tmp_path / "absent")})


def test_the_policy_file_is_a_setting_and_no_secret_in_a_file(tmp_path):
    assert load({"INSPECTOR_POLICY_FILE": str(tmp_path / "absent.toml")}).policy_file == str(tmp_path / "absent.toml")
