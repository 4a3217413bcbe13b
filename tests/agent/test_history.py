"""What the model is shown fits, begins with the task, and ends with what happened last."""

from hypothesis import given
from hypothesis import strategies as st

from inspector.agent.endpoint import EndpointFailed, Message
from inspector.agent.history import RECENT, SUMMARY_CHARS, History

HEAD = [Message("system", "rules"), Message("user", "the task")]


def made(sizes, budget, ask=lambda messages: "what was done"):
    history = History(HEAD, budget_chars=budget, ask=ask)
    for at, size in enumerate(sizes):
        history.add(Message("user" if at % 2 else "assistant", f"{at:04}" + "x" * size))
    return history


@given(st.lists(st.integers(0, 3000), max_size=40), st.integers(2000, 30_000))
def test_it_begins_with_the_task_and_ends_with_the_newest(sizes, budget):
    shown = made(sizes, budget).shown()
    assert shown[:2] == HEAD
    if sizes:
        assert shown[-1].content.startswith(f"{len(sizes) - 1:04}") or len(sizes) <= RECENT
    newest = sum(len(message.content) for message in shown[-RECENT:])
    assert sum(len(message.content) for message in shown) <= max(budget, newest + SUMMARY_CHARS + 200)


def test_old_observations_are_cut_first_and_say_how_much():
    history = made([10, 5000] * 10, 40_000)
    shown = history.shown()
    assert history.pruned > 0
    assert history.summaries == 0
    assert "characters left out" in shown[3].content
    assert len(shown[-1].content) == 5004


def test_what_does_not_fit_is_summarised():
    asked = []
    history = made([1000] * 60, 12_000, ask=lambda messages: asked.append(messages) or "I changed a.py")
    shown = history.shown()
    assert history.summaries == 1
    assert len(asked) == 1
    assert shown[2].content.endswith("I changed a.py")
    assert shown[3].role == "assistant"
    assert sum(len(message.content) for message in asked[0]) <= 12_000


def test_without_an_endpoint_for_the_summary_the_work_goes_on():
    def fails(messages):
        raise EndpointFailed("away")

    shown = made([1000] * 60, 12_000, ask=fails).shown()
    assert "no summary could be made" in shown[2].content
