"""What a browser may keep for good, and the page that it gets of an episode."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from dashboard import assets
from dashboard.frame import INDEX, Frame, framed


@pytest.fixture
def browser():
    return TestClient(Starlette(routes=[Route(assets.ROUTE, assets.serve), Route("/episode", Frame().episode)]))


def test_a_script_is_kept_for_good_under_the_address_of_what_it_holds(browser):
    address = assets.address("transcript/view.js")
    answer = browser.get(address)
    assert answer.content == (assets.FOLDER / "transcript" / "view.js").read_bytes()
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    assert browser.get("/assets/0/transcript/view.js").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("name", ["../assets.py", "transcript/__init__.py", "transcript/nothing.js", ""])
def test_nothing_else_is_given_out(browser, name):
    assert browser.get(f"/assets/0/{name}").status_code == 404


def test_every_import_of_a_script_is_there():
    for name, content in assets.files().items():
        for wanted in re.findall(r"""(?:from|import) ?\(?"(\.[^"]+)\"""", content.decode()):
            found = (assets.FOLDER / name).parent / wanted
            assert str(found.resolve().relative_to(assets.FOLDER.resolve())) in assets.files(), (name, wanted)


def test_the_page_of_an_episode_is_streamlits_with_its_scripts_put_by(browser):
    page = browser.get("/episode", params={"key": "<script>alert"})
    assert page.headers["cache-control"] == "no-cache"
    assert "<script>alert" not in page.text
    put, rest = page.text.split('<template id="ins-streamlit">')[1].split("</template>")
    assert "static/js/index." in put
    assert "static/js/" not in rest
    assert "transcript/early.js" in rest
    for line in INDEX.read_text().splitlines():
        assert line.strip() in page.text


def test_a_page_of_another_form_is_left_as_it_is():
    assert framed("<html></html>") == "<html></html>"
