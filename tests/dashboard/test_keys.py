"""No two things of one page listen to the same key, and none to one that Streamlit or the browser takes."""

import pytest
from streamlit.elements.lib import shortcut_utils

from dashboard import keys

PAGES = {
    "triage": (keys.TRIAGE, keys.IN_QUEUE),
    "episode": (keys.EPISODE, keys.IN_TRANSCRIPT),
    "environments": (keys.ENVIRONMENTS, keys.IN_QUEUE),
    "environment": (keys.ENVIRONMENT, keys.IN_QUEUE),
}


@pytest.mark.parametrize("page", PAGES)
def test_no_key_of_a_page_is_taken_twice(page):
    buttons, component = PAGES[page]
    taken = [shortcut_utils.normalize_shortcut(key) for key in buttons.values()] + list(component)  # raises for reserved keys
    assert len(taken) == len(set(taken))
    assert not set(taken) & {"c", "r"}
    assert not set(taken) & shortcut_utils._BROWSER_RESERVED_SHORTCUTS


@pytest.mark.parametrize("page", PAGES)
def test_every_key_of_a_page_is_documented(page):
    buttons, component = PAGES[page]
    told = {line.split()[0].lower() for line in keys.documented(buttons, component).splitlines()}
    assert told == {*buttons.values(), *component}


def test_the_components_listen_to_what_is_documented():
    from pathlib import Path

    folder = Path(keys.__file__).parent / "components"
    script = (folder / "transcript" / "view.js").read_text()
    acts = script[script.index("const acts = {") : script.index("const act = acts")]
    assert all(f"{key}:" in acts or f'"{key}":' in acts for key in keys.IN_TRANSCRIPT)
    assert "{ j: 1, k: -1 }" in (folder / "walk.js").read_text()
