"""The transcript in a real Chromium: a long episode stays small and quick, and a hostile one does nothing."""

from __future__ import annotations

import time

import pytest

from tests.dashboard.house import EVIL, long_steps, with_steps

WITHIN_MS = 60_000  # for a machine that does other things too; the slow test below asks for a second
MOST_NODES = 300


@pytest.fixture(scope="module")
def keys(served):
    """A 4 MB episode of 2,000 steps, and a hostile one."""
    hostile = [
        {"step_id": 1, "source": "user", "message": EVIL},
        {
            "step_id": 2,
            "source": "agent",
            "reasoning_content": EVIL,
            "message": f"{EVIL} and the needle 😀 itself",
            "tool_calls": [{"tool_call_id": "c", "function_name": EVIL, "arguments": {EVIL: EVIL, "deep": {"a": [EVIL]}}}],
            "observation": {"results": [{"source_call_id": "c", "content": "x" * 9_000 + " far needle"}]},
        },
    ]
    return served.post(with_steps(long_steps(), id="long"), with_steps(hostile, id="evil", task={"id": "<img src=x onerror=alert(4)>"}))


@pytest.fixture
def page(served, dashboard, browser):
    """A page that is signed in; a dialog, an error of a script or a call to elsewhere fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=dashboard)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(WITHIN_MS)
    context.add_init_script(
        """(() => { const look = () => { if (document.querySelector(".ins-step .ins-text")) {
             window.first = { ms: performance.now(), nodes: document.querySelectorAll(".ins-transcript *").length,
                              body: document.body.querySelectorAll("*").length } }
           else requestAnimationFrame(look) }; requestAnimationFrame(look) })()"""
    )
    opened, wrong = context.new_page(), []
    opened.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    opened.on("pageerror", lambda error: wrong.append(f"script: {error}"))
    opened.on("request", lambda request: None if request.url.startswith((dashboard, "data:", "blob:")) else wrong.append(f"elsewhere: {request.url}"))
    with served.api("acme-reviewer") as api:
        opened.goto(f"/login?token={api.post('/v1/logins')['token']}")
    opened.wait_for_selector(".ins-row", state="attached")
    yield opened
    context.close()
    assert wrong == []


def nodes(page):
    return page.evaluate("document.querySelectorAll('.ins-transcript *').length")


def text_of(step):
    return f".ins-step[data-at='{step}'] .ins-text"


def open_episode(page, key):
    page.goto(f"/episode?key={key}")
    page.wait_for_selector(text_of(0))


def timed(act):
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def jump(page, step):
    page.fill(".ins-jump", str(step))
    page.press(".ins-jump", "Enter")
    page.wait_for_selector(text_of(step))


def find(page, word, step):
    page.fill(".ins-search", word)
    page.press(".ins-search", "Enter")
    page.wait_for_selector(f".ins-step[data-at='{step}'] mark.ins-current")


def copy_three(page, first):
    """Drag from the message of one step to that of the one two further on, and copy."""
    page.evaluate(
        """(first) => { const at = (n) => document.querySelector(`.ins-step[data-at='${n}'] .ins-kind-message .ins-text`).firstChild;
           const last = at(first + 2); getSelection().setBaseAndExtent(at(first), 0, last, last.data.length) }""",
        first,
    )
    page.keyboard.press("Control+C")
    return page.evaluate("navigator.clipboard.readText()")


def to_the_end(page):
    """As a person does: what comes into view may be taller than it was taken for, so the end can move once more."""
    page.wait_for_function(
        """(last) => { const list = document.querySelector('.ins-scroll'); list.scrollTop = list.scrollHeight;
           return document.querySelector(last) !== null }""",
        arg=text_of(1_999),
        polling=500,
    )


def test_a_long_episode_keeps_few_nodes_and_all_its_steps(page, keys):
    open_episode(page, keys["long"])
    first = page.evaluate("window.first")
    assert first["nodes"] <= MOST_NODES
    assert "of 2,000" in page.inner_text(".ins-where")
    jump(page, 1_700)
    assert "step=1700" in page.url
    assert page.inner_text(text_of(1_700)).startswith("step number 1700")
    find(page, "ZANZIBAR", 1_500)
    assert page.inner_text("mark.ins-current") == "zanzibar"
    assert "1 of 1" in page.inner_text(".ins-status")
    assert nodes(page) <= MOST_NODES
    to_the_end(page)
    assert page.inner_text(text_of(1_999)).startswith("step number 1999")
    assert nodes(page) <= MOST_NODES


def test_a_selection_across_steps_is_copied_and_outlives_scrolling(page, keys):
    page.goto(f"/episode?key={keys['long']}&step=100")
    page.wait_for_selector(text_of(100))
    page.keyboard.press("j")
    page.wait_for_selector(".ins-step[data-at='101'].ins-here")
    page.wait_for_selector(text_of(101))
    page.evaluate("getSelection().selectAllChildren(document.querySelector(\".ins-step[data-at='101'] .ins-text\"))")
    page.evaluate("document.querySelector('.ins-scroll').scrollTop += 1500")
    page.wait_for_selector(".ins-step[data-at='104'] .ins-text")
    copied = copy_three(page, 101)
    assert [f"step number {n}" in copied for n in (101, 102, 103)] == [True] * 3
    assert "systemctl status unit-102" in copied


def test_a_hostile_transcript_does_nothing_and_hides_nothing(page, keys):
    open_episode(page, keys["evil"])
    page.wait_for_selector("dl >> text=<img src=x onerror=alert(4)>")
    page.wait_for_timeout(500)
    assert page.evaluate("document.querySelectorAll('.stMain img, .stMain script, .ins-mount a[href^=javascript]').length") == 0
    shown = page.inner_text(".ins-step[data-at='1'] .ins-kind-message")
    assert "<script>alert(2)</script>" in shown
    assert "␛[31m \\u{202e}gnp.exe \\u{200b}" in shown
    find(page, "needle", 1)
    assert page.inner_text("mark.ins-current") == "needle"
    page.press(".ins-search", "Enter")
    page.wait_for_selector(".ins-kind-result mark.ins-current")
    assert page.inner_text(".ins-kind-result mark.ins-current") == "needle"
    page.click(".ins-kind-result .ins-more")
    page.wait_for_selector("text=show all 9,011 characters (6,611 more)")


def test_keys_typed_into_a_field_are_not_shortcuts(page, keys):
    open_episode(page, keys["long"])
    page.focus(".ins-search")
    page.keyboard.type("aqst jknp")
    page.wait_for_timeout(1_000)
    assert page.input_value(".ins-search") == "aqst jknp"
    assert "/episode" in page.url


def test_the_list_is_walked_by_keys_and_judged(page, served, keys):
    page.keyboard.press("j")
    page.wait_for_selector(".ins-row.ins-chosen:nth-of-type(3)")
    page.keyboard.press("o")
    page.wait_for_selector(".ins-step .ins-text")
    assert "/episode?key=" in page.url


@pytest.mark.slow
def test_a_long_episode_is_there_within_a_second(page, keys):
    open_episode(page, keys["long"])
    page.goto(f"/episode?key={keys['long']}")  # with what a browser keeps of the pages
    page.wait_for_selector(text_of(0))
    first = page.evaluate("window.first")
    took = {"jump": timed(lambda: jump(page, 1_700)), "search": timed(lambda: find(page, "zanzibar", 1_500))}
    jump(page, 200)
    took["copy"] = timed(lambda: copy_three(page, 200))
    print("first paint", first, {name: round(s, 3) for name, s in took.items()})
    assert first["ms"] <= 1_000
    assert max(took.values()) <= 1.0
