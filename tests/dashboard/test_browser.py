"""The transcript in a real Chromium: a long episode stays small and quick, and a hostile one does nothing."""

from __future__ import annotations

import os
import time

import pytest

from dashboard import assets
from dashboard.painting import paint, place
from tests.dashboard.house import EVIL, long_steps, watched, with_steps

TOP = "Math.round(document.querySelector('.ins-scroll').getBoundingClientRect().top)"
MOST_NODES = 300
FIRST = """(() => { const look = () => { if (document.querySelector(".ins-step .ins-text"))
    window.first = { ms: performance.now(), nodes: document.querySelectorAll("*").length };
  else requestAnimationFrame(look) }; requestAnimationFrame(look) })()"""


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


@pytest.fixture(scope="module")
def quoted(served):
    """An episode of which a check says where: a hook that makes failed tests pass."""
    hook = [
        "import pytest",
        "",
        "@pytest.hookimpl(hookwrapper=True)",
        "def pytest_runtest_makereport(item, call):",
        "    (yield).get_result().outcome = 'passed'",
    ]
    steps = long_steps(60, 300)
    arguments = {"command": "create", "path": "/srv/repo/conftest.py", "file_text": "\n".join(hook)}
    steps[30]["tool_calls"] = [{"tool_call_id": "c30", "function_name": "str_replace_editor", "arguments": arguments}]
    return served.post(with_steps(steps, id="quoted"))["quoted"]


@pytest.fixture
def page(served, dashboard, browser):
    """A page that is signed in."""
    with watched(browser, dashboard, FIRST) as opened:
        with served.api("acme-reviewer") as api:
            opened.goto(f"/login?token={api.post('/v1/logins')['token']}")
        opened.wait_for_selector(".ins-row", state="attached")
        yield opened


def nodes(page):
    """Of the whole document: what Streamlit makes of the page is in it."""
    return page.evaluate("document.querySelectorAll('*').length")


def complete(page):
    """Until the last that Streamlit draws is there, and the transcript has room for what it has yet to draw."""
    page.wait_for_selector("text=Task and environment version")
    page.wait_for_selector(".ins-early", state="detached")
    page.wait_for_timeout(300)


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
        """(first) => { const at = (n) => document.querySelector(`.ins-step[data-at='${n}'] .ins-text.ins-kind-message`).firstChild;
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
    assert page.evaluate("window.first")["nodes"] <= MOST_NODES
    complete(page)
    assert nodes(page) <= MOST_NODES
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
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")  # the key has had its effect: what is drawn stays
    page.evaluate("getSelection().selectAllChildren(document.querySelector(\".ins-step[data-at='101'] .ins-text\"))")
    page.evaluate("document.querySelector('.ins-scroll').scrollTop += 1500")
    page.wait_for_selector(".ins-step[data-at='104'] .ins-text")
    copied = copy_three(page, 101)
    assert [f"step number {n}" in copied for n in (101, 102, 103)] == [True] * 3
    assert "systemctl status unit-102" in copied


def test_a_hostile_transcript_does_nothing_and_hides_nothing(page, keys):
    open_episode(page, keys["evil"])
    page.wait_for_selector("dl >> text=<img src=x onerror=alert(4)>")
    complete(page)
    assert page.evaluate("document.querySelectorAll('.stMain img, .stMain script, .ins-mount a[href^=javascript]').length") == 0
    shown = page.inner_text(".ins-step[data-at='1'] .ins-kind-message")
    assert "<script>alert(2)</script>" in shown
    assert "␛[31m \\u{202e}gnp.exe \\u{200b}" in shown
    find(page, "needle", 1)
    assert page.inner_text("mark.ins-current") == "needle"
    page.press(".ins-search", "Enter")
    page.wait_for_selector(".ins-kind-result mark.ins-current")
    assert page.inner_text(".ins-kind-result mark.ins-current") == "needle"
    page.click(".ins-kind-result + .ins-more")
    page.wait_for_selector("text=show all 9,011 characters (6,611 more)")


def test_a_finding_quotes_its_passage_and_leads_to_it(page, quoted):
    page.goto(f"/episode?key={quoted}")
    page.wait_for_selector(text_of(0))
    first = page.evaluate(TOP)
    assert "hookwrapper=True" in page.inner_text(".ins-quote")
    assert page.get_attribute(".ins-quote", "data-label").startswith("step #30 · tool_calls[0]")
    complete(page)
    assert page.evaluate(TOP) == first, "what was found pushes nothing down"
    page.click(".ins-quote")
    page.wait_for_selector(".ins-step[data-at='30'] mark.ins-current")
    assert "step=30" in page.url
    assert nodes(page) <= MOST_NODES


def test_a_cause_is_chosen_and_the_next_key_judges(page, served, quoted):
    page.goto(f"/episode?key={quoted}")
    complete(page)
    page.click("input[aria-label='Cause of the fault']")
    page.click("[role=option] >> text=environment_defect")
    page.wait_for_function("document.activeElement === document.body")
    page.wait_for_timeout(500)
    page.keyboard.press("q")
    page.wait_for_selector("text=/Quarantined as environment_defect, logged as seq/")
    page.goto(f"/episode?key={quoted}")
    complete(page)
    page.keyboard.press("v")
    page.wait_for_function("document.activeElement.ariaLabel === 'Reward to use'")
    page.keyboard.type("0.25")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=/Reward overridden as environment_defect, logged as seq/")
    with served.api() as api:
        assert api.trajectory(quoted)["summary"]["reward_override"] == 0.25


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


def test_a_begun_transcript_is_taken_over_by_the_page_and_by_no_other(page, keys):
    page.goto(f"/episode?key={keys['long']}&step=40")
    page.wait_for_selector(text_of(40))
    page.evaluate("document.querySelector('.ins-transcript').dataset.begun = 'early'")
    complete(page)
    assert page.locator(".ins-transcript").count() == 1
    assert page.get_attribute(".ins-mount .ins-transcript", "data-begun") == "early"
    assert page.inner_text(".ins-where").startswith("#40-")
    page.goto("/episode?key=00000000-0000-4000-8000-000000000000")
    page.wait_for_selector("text=The service answered 404.")
    assert page.locator(".ins-transcript").count() == 0


def test_the_browser_marks_what_the_server_meant(page):
    """`placeOf` is `place` again."""
    text = "a\x1b\u202e😀é\u200b and the evidence 😀 itself"
    pieces = paint(text).pieces
    module = assets.address("transcript/marks.js")
    script = f"async ([pieces, given]) => {{ const {{ placeOf }} = await import({module!r}); return given.map((at) => placeOf(pieces, at)) }}"
    given = list(range(len(text) + 1))
    told = page.evaluate(script, [[list(piece) for piece in pieces], given])
    assert told == [place(pieces, at) for at in given]


@pytest.mark.slow
def test_a_person_judges_with_a_note_and_releases_a_task(page, served, keys):
    own = served.post(*(with_steps([{"step_id": 1, "source": "user", "message": "hello"}], id=name, run={"id": "judged"}) for name in ("j1", "j2", "j3")))
    page.goto("/?run=judged")
    page.wait_for_selector(".ins-row.ins-chosen")
    first = page.locator(".ins-row.ins-chosen .ins-open").get_attribute("href")
    page.fill("input[aria-label='Note']", "looks right")
    page.press("input[aria-label='Note']", "Tab")
    page.click("button:has-text('Accept')")
    page.wait_for_selector("text=Accepted, logged as seq")
    page.keyboard.press("o")
    page.wait_for_selector(".ins-step .ins-text")
    complete(page)
    second = page.url
    page.keyboard.press("v")
    page.fill("input[aria-label='Reward to use']", "0.5")
    page.press("input[aria-label='Reward to use']", "Enter")
    page.wait_for_selector("text=/Reward overridden as .*, logged as seq/")
    page.wait_for_function("(before) => location.href !== before", arg=second)
    complete(page)
    page.keyboard.press("q")
    page.wait_for_selector("text=/Quarantined as .*, logged as seq/")
    with served.api() as api:
        told = {name: api.trajectory(key) for name, key in own.items()}
        assert sorted(str(one["summary"]["action"]) for one in told.values()) == ["exclude", "keep", "override_reward"]
        assert [one["reviews"][0]["note"] for one in told.values() if one["summary"]["key"] in first] == ["looks right"]
        line = told["j1"]["summary"]
        api.set_state(line["environment"], line["version"], "quarantined", note="for the test", task=line["task"])
    page.goto(f"/episode?key={own['j1']}")
    complete(page)
    page.click("text=Task and environment version")
    page.fill("input[aria-label='Why']", "its verifier was mended")
    page.press("input[aria-label='Why']", "Tab")
    page.click("text=Every project that posted it will be told")
    page.click("button:has-text('Set the state')")
    page.wait_for_selector("text=Now active")


WATCH = """() => { window.shown = null; const begun = performance.now(); const before = new Set(document.querySelectorAll(".ins-step"));
  const look = () => { const text = document.querySelector(".ins-step .ins-text");
    if (text && !before.has(text.closest(".ins-step"))) window.shown = { ms: performance.now() - begun, nodes: document.querySelectorAll("*").length };
    else requestAnimationFrame(look) }; requestAnimationFrame(look) }"""


def cold(page, browser, dashboard, key):
    """By a link, in a browser that is signed in and has nothing else of us: from the start of the navigation to the first text of a step."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=dashboard, storage_state=page.context.storage_state())
    context.add_init_script(FIRST)
    opened = context.new_page()
    opened.goto(f"/episode?key={key}")
    opened.wait_for_selector(text_of(0))
    first = opened.evaluate("window.first")
    context.close()
    return first


def again(page, key):
    """By a link, in a browser that has been here."""
    open_episode(page, key)
    return page.evaluate("window.first")


def next_one(page, key):
    """As a reviewer goes on: from the key that opens the episode, chosen in triage, to the first text of a step."""
    page.goto("/")
    page.click(f".ins-row:has(a[href*='{key}']) .ins-verdict")
    page.wait_for_timeout(1_500)  # a look at the row
    page.evaluate(WATCH)
    page.keyboard.press("o")
    page.wait_for_function("window.shown")
    return page.evaluate("window.shown")


@pytest.mark.slow
def test_a_long_episode_is_there_within_a_second(page, browser, dashboard, keys):
    """First paint: the first text of a step is in the document and the frame that holds it is about to be painted. Medians of three."""
    key = keys["long"]
    ways = {"cold link": lambda: cold(page, browser, dashboard, key), "link": lambda: again(page, key), "next": lambda: next_one(page, key)}
    seen = {name: sorted((way() for _ in range(3)), key=lambda first: first["ms"]) for name, way in ways.items()}
    complete(page)
    took = {"jump": timed(lambda: jump(page, 1_700)), "search": timed(lambda: find(page, "zanzibar", 1_500))}
    jump(page, 200)
    took["copy"] = timed(lambda: copy_three(page, 200))
    firsts = {name: [(round(first["ms"]), first["nodes"]) for first in three] for name, three in seen.items()}
    print("load", os.getloadavg()[0], firsts, {name: round(s, 3) for name, s in took.items()})
    assert max(first["nodes"] for firsts in seen.values() for first in firsts) <= MOST_NODES
    assert max(firsts[1]["ms"] for firsts in seen.values()) <= 1_000
    assert max(took.values()) <= 1.0
