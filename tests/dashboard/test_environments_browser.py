"""The pages of environments in a real Chromium: walked by keys, opened by links, deaf to what foreign texts ask for."""

from __future__ import annotations

import pytest

from inspector.probe.words import Outcome
from tests.dashboard import probing
from tests.dashboard.house import EVIL, watched

HOSTILE = "<img src=x onerror=alert(4)>"
MANY = {f"task {at:02}": (Outcome.SOUND,) for at in range(28)} | {HOSTILE: (Outcome.EXPLOITABLE, Outcome.FLAKY)}
MOST_NODES = 700
CHOSEN = ".ins-line.ins-chosen"


@pytest.fixture(scope="module")
def probed(served):
    """A version of more tasks than a page holds; the worst is hostile in every text."""
    probing.register(served, "1")
    probing.start(served, "1")
    probing.work(served, MANY, text=EVIL)
    probing.register(served, "2")
    return served


def there(page, button):
    """Until the button listens to its key."""
    page.wait_for_selector(f"button:has-text('{button}')")


@pytest.fixture
def page(probed, dashboard, browser):
    """A page that an owner is signed in to."""
    with watched(browser, dashboard) as opened:
        with probed.api() as api:
            opened.goto(f"/login?token={api.post('/v1/logins')['token']}")
        there(opened, "Environments")
        yield opened


def test_a_version_is_found_opened_and_walked_by_keys(page):
    page.keyboard.press("n")
    page.wait_for_selector(f"{CHOSEN} >> text=acme/rows@1")
    there(page, "Open")
    page.keyboard.press("j")
    page.wait_for_selector(f"{CHOSEN} >> text=acme/rows@2")
    page.keyboard.press("k")
    page.keyboard.press("o")
    page.wait_for_selector("h3 >> text=acme/rows@1")
    page.wait_for_selector(f"{CHOSEN} >> text={HOSTILE}")
    there(page, "Next page")
    assert page.locator(".ins-line[role=option]").count() == 25
    page.keyboard.press("j")
    page.wait_for_url("**/environment?*task=task+00*")
    page.wait_for_selector(".ins-sheet h4 >> text=task 00")
    page.keyboard.press("m")
    page.wait_for_selector(f"{CHOSEN} >> text=task 24")
    page.wait_for_function("document.querySelectorAll('.ins-line[role=option]').length === 4")


def test_a_link_shows_a_task_and_its_texts_do_nothing(page):
    page.goto(f"/environment?name=acme/rows&version=1&task={HOSTILE}")
    page.wait_for_selector(f".ins-sheet h4 >> text={HOSTILE}")
    assert page.locator(".ins-sheet img, .ins-listing img, .ins-sheet script").count() == 0
    shown = page.inner_text(".stMain")
    assert "<script>alert(2)</script>" in shown
    assert not {"\x1b", "\u202e", "\u200b"} & set(shown)
    page.wait_for_selector("text=Task and environment version")
    assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES


def test_a_probe_is_started_and_halted_by_keys(page, probed):
    page.goto("/environment?name=acme/rows&version=2")
    page.click("button:has-text('Start a probe')")
    field = "input[aria-label='CPU seconds at most']"
    page.wait_for_selector(field)
    page.wait_for_selector("[data-testid=stPopoverBody] button:has-text('Start')")
    page.keyboard.press("p")
    page.wait_for_selector("text=Probe queued")
    page.wait_for_selector(field, state="detached")
    there(page, "Halt")
    page.keyboard.press("h")
    page.wait_for_selector("text=Probe cancelled")
    with probed.api() as api:
        assert next(api.probes())["state"] == "cancelled"
