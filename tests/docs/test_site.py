"""`make docs`: every page is there, its links lead somewhere, and its words are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.docs.markdown import HOME, PAGES

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, which is not built where a link or an anchor leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "-d", folder], cwd=HOME, capture_output=True,
                          text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there_and_found(site):
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    for page in PAGES:
        name = page.relative_to(HOME / "docs" if page.parent != HOME else HOME).with_suffix("").as_posix()
        place = f"{'source/' * (page.parent == HOME)}{re.sub('README$', 'index', name)}.html"
        assert (site / place).is_file() and place in index, place


def test_links_lead_to_files_of_the_site_and_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="?https?:|<link[^>]+stylesheet[^>]+https?:', text), page
        for link in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^":]*)?"', text):
            assert page.name == "404.html" or (page.parent / link).exists(), f"{page}: {link}"


def test_code_that_pages_name_and_what_is_folded_can_be_read(site):
    assert "class Touch(Skill)" in (site / "source/examples/own_skill.py.txt").read_text(encoding="utf-8")
    folded = (site / "findings/gpu.html").read_text(encoding="utf-8").partition("<details")[2]
    assert "<table>" in folded and "<h2 id=" in folded
