"""The page that is pinned on the wall."""

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser

import pytest

from inspector.probe.words import Outcome
from inspector.reports.articles import anchor
from inspector.reports.html import html
from tests.reports.house import UNSEEN, environment, hostile, probed, run, task

BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "footer", "article", "section", "details", "summary", "h1", "h2", "h3", "h4", "p"),
    *("dl", "div", "dt", "dd", "ul", "li", "svg", "rect", "table", "thead", "tbody", "tr", "th", "td", "span", "a", "code", "wbr", "pre", "strong"),
}


class Read(HTMLParser):
    """All elements and attributes of a page."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(name, value) for name, value in attrs]

    def all(self, wanted):
        return [value for name, value in self.attributes if name == wanted]


def test_its_policy_allows_its_own_style_and_nothing_else():
    page = html(probed(environment(task("a", Outcome.FLAKY))))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert page.index("Content-Security-Policy") < page.index("<style>")


@pytest.mark.parametrize("length", [0, 1 << 20])
def test_hostile_text_stays_text(length):
    page = html(hostile(length))
    read = Read(page)
    assert not UNSEEN & set(page)
    assert set(read.elements) <= ELEMENTS
    assert not [name for name, _ in read.attributes if name.startswith("on") or name in {"src", "style"}]
    assert all(href.startswith("#") for href in read.all("href"))
    assert len(page) < 4 << 20


def test_each_task_has_an_anchor_that_lasts():
    report = environment(task("a", Outcome.FLAKY), task("b", Outcome.SOUND), task("c", Outcome.NOT_ASSESSED))
    read = Read(html(probed(report)))
    identities = read.all("id")
    assert len(identities) == len(set(identities))
    assert {href.removeprefix("#") for href in read.all("href")} <= set(identities)
    assert anchor(report, report.tasks[0]) in identities
    assert anchor(environment(*report.tasks, version="2"), report.tasks[0]) == anchor(report, report.tasks[0])


def test_what_every_task_shares_is_said_before_all_tasks():
    page = html(probed(environment(task("a", Outcome.NOT_REPRODUCED), notes=["Every task failed alike: look at this machine first."])))
    assert page.index("look at this machine first") < page.index("What is not sound")


def test_runs_that_came_to_the_same_share_a_row():
    page = html(probed(environment(task("a", Outcome.FLAKY, runs=[run()] * 5 + [run(reward=0.0)] * 4 + [run(reward=None)]))))
    assert [re.sub("<[^>]+>", " ", row).split() for row in re.findall("<tr><td><code>reference.*?</tr>", page)] == [
        ["reference", "5", "1", "paid", "1.25", "s"], ["reference", "4", "0", "1.00", "s"], ["reference", "1", "none", "0.25", "s"]
    ]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on PATH (Debian: apt-get install chromium), so nothing is tried in a browser")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=BROWSER)
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_a_browser_shows_it_whole_and_runs_nothing(browser, tmp_path, width, scheme):
    file = tmp_path / "probe.html"
    file.write_text(html(hostile(5_000)), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, wrong = context.new_page(), []
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda said: wrong.append(said.text))  # a refused style or script is told there
    page.on("request", lambda request: None if request.url == file.as_uri() else wrong.append(request.url))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.querySelector('article')).borderTopWidth") == "1px"
    context.close()
    assert wrong == []
