"""The contract refuses, at import, what could go wrong while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import pytest
from msgspec import Meta

from inspector.check import (
    Baselines,
    Batch,
    Cause,
    Declaration,
    Finding,
    Group,
    History,
    Judge,
    MisusedCheck,
    Span,
    Tier,
    Trajectory,
    Twin,
    check,
    misfit,
    text_at,
)
from inspector.testing import trajectory

mark = check(version=1, tier=Tier.EVIDENCE, cause=Cause.ANOMALY)


@mark
def plain(trajectory: Trajectory, declaration: Declaration, history: History, *, limit: Annotated[int, Meta(ge=1)] = 3) -> Iterator[Finding]:
    """It is plain.

    And it has a second paragraph.
    """
    yield Finding(message=f"{trajectory.id} {limit}")


def test_the_signature_says_what_a_check_inspects_needs_and_takes():
    assert plain.subject is Trajectory
    assert plain.needs == (Declaration, History)
    assert plain.parameters == {"limit": 3}
    assert plain.title == "It is plain."
    assert plain.qualified("acme").name == "acme/plain"
    assert not plain.late


def test_groups_and_judges_put_a_check_in_the_late_lane():
    @mark
    def of_groups(group: Group) -> Iterator[Finding]:
        """Late."""
        yield from ()

    @mark
    def judged(trajectory: Trajectory, judge: Judge) -> Iterator[Finding]:
        """Late."""
        yield from ()

    assert of_groups.late
    assert judged.late


def test_a_batch_takes_what_is_per_trajectory_as_sequences():
    @mark
    def many(batch: Batch, declarations: Sequence[Declaration], baselines: Sequence[Baselines], history: History) -> Iterator[Any]:
        """Many at once."""
        yield from ()

    assert many.needs == (Declaration, Baselines, History)


def test_parameters_are_converted_and_bounded():
    assert plain.with_parameters(limit="7").parameters == {"limit": 7}
    assert [finding.message for finding in plain.with_parameters(limit=7)(trajectory(), Declaration(), History())] == ["run7-s12-g3-0 7"]
    assert plain.digest != plain.with_parameters(limit=7).digest
    assert plain.digest == plain.with_parameters(limit=3).digest
    with pytest.raises(MisusedCheck, match=r"plain\.limit=0: .*>= 1"):
        plain.with_parameters(limit=0)
    with pytest.raises(MisusedCheck, match=r"no parameter 'limt'; its parameters are: limit"):
        plain.with_parameters(limt=1)


def no_annotation(trajectory) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def no_subject(declaration: Declaration) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def unknown_need(trajectory: Trajectory, weather: int) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def no_default(trajectory: Trajectory, *, limit: int) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def default_out_of_bounds(trajectory: Trajectory, *, limit: Annotated[int, Meta(ge=1)] = 0) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def foreign_bound(trajectory: Trajectory, *, limit: Annotated[int, "at least one"] = 1) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def starred(trajectory: Trajectory, *rest: Declaration) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def one_declaration_for_a_batch(batch: Batch, declaration: Declaration) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def many_declarations_for_one(trajectory: Trajectory, declarations: Sequence[Declaration]) -> Iterator[Finding]:
    """Wrong."""
    yield from ()


def undocumented(trajectory: Trajectory) -> Iterator[Finding]:
    yield from ()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (no_annotation, "has no annotation"),
        (no_subject, "its first argument must be one of Trajectory, Batch, Group"),
        (unknown_need, "nobody provides"),
        (no_default, "needs a default"),
        (default_out_of_bounds, "limit=0"),
        (foreign_bound, "would not be enforced"),
        (starred, "write out every argument"),
        (one_declaration_for_a_batch, "only a check of Batch takes"),
        (many_declarations_for_one, "only a check of Batch takes"),
        (undocumented, "has no docstring"),
    ],
)
def test_a_function_that_breaks_the_contract_is_refused(function, reason):
    with pytest.raises(MisusedCheck, match=reason):
        mark(function)


def test_a_version_starts_at_one():
    with pytest.raises(MisusedCheck, match="version 0"):
        check(version=0, tier=Tier.TEXT, cause=Cause.ANOMALY)(plain.function)


# --- findings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("message", "The port is misspelt."),
        ("tool_calls[0].arguments.command", "sed -i 's/listen 8O/listen 80/' /etc/nginx/nginx.conf && nginx -t"),
        ("observation.results[0].content", "nginx: configuration file /etc/nginx/nginx.conf test is successful"),
        ("reasoning_content", None),
        ("tool_calls[1].arguments.command", None),
        ("tool_calls[0].arguments.nothing", None),
        ("observation.results[7].content", None),
        ("metrics", None),
    ],
)
def test_a_field_has_a_text(field, text):
    assert text_at(trajectory(), Span(step=1, field=field)) == text


def test_an_argument_that_is_no_string_is_read_as_json():
    call = {"tool_call_id": "c", "function_name": "edit", "arguments": {"a.b": {"lines": [1, 2]}}}
    odd = trajectory(steps=[{"step_id": 1, "source": "agent", "message": "", "tool_calls": [call]}])
    assert text_at(odd, Span(step=0, field="tool_calls[0].arguments.a.b")) == '{"lines":[1,2]}'


@pytest.mark.parametrize(
    ("finding", "fault"),
    [
        (Finding(message="m", spans=(Span(step=1, field="message", start=4, end=8),)), None),
        (Finding(message="m", p_value=0.0), None),
        ("a string", "yielded str"),
        (Finding(message=3), "Expected `str`"),  # type: ignore[arg-type]
        (Finding(message="m", score=float("nan")), "outside"),
        (Finding(message="m", score=1.1), "outside"),
        (Finding(message="m", p_value=-0.1), "p_value"),
        (Finding(message="m", spans=(Span(step=3, field="message"),)), "not there"),
        (Finding(message="m", spans=(Span(step=-1, field="message"),)), "not there"),
        (Finding(message="m", spans=(Span(step=1, field="message", start=0, end=99),)), "outside the 21 characters"),
        (Finding(message="m", spans=(Span(step=1, field="message", start=5, end=4),)), "outside the 21 characters"),
    ],
)
def test_a_finding_must_fit_its_trajectory(finding, fault):
    reason = misfit(finding, trajectory())
    assert reason is None if fault is None else fault in reason


def test_a_finding_about_a_group_points_into_no_transcript():
    assert misfit(Finding(message="m"), None) is None
    assert misfit(Finding(message="m", spans=(Span(step=0, field="message"),)), None)


def test_history_tells_projects_apart_by_our_own_key():
    history = History(twins={"key-1": [Twin("a", 1.0)]})
    assert history.twins(trajectory(key="key-1")) == [Twin("a", 1.0)]
    assert history.twins(trajectory(key="key-2", id="key-1")) == ()
    left = History(same_state={"key-1": [Twin("a", 1.0)]})
    assert (left.same_state(trajectory(key="key-1")), left.same_state(trajectory(key="key-2", id="key-1"))) == ([Twin("a", 1.0)], ())
