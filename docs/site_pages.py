"""What `make docs` adds to the pages: a menu, which is the tables of docs/README.md, and the files outside of docs/
that pages link to, other pages and code as plain text. mkdocs.yml names this file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.structure.files import File

HOME = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")


def on_config(config):
    """Each part of docs/README.md is a part of the menu."""
    first, *parts = re.split(r"^## ", (HOME / "docs/README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    config.nav = [{"Pages": "README.md"}, {"About": "source/README.md"}]
    for part in parts:
        links = dict(re.findall(r"\[([^\]]+)\]\(([\w/]+\.md)\)", part))
        config.nav.append({part.partition("\n")[0]: [{title[0].upper() + title[1:]: page}
                                                     for title, page in links.items()]})
    findings = (HOME / "docs/findings/README.md").read_text(encoding="utf-8")
    config.nav[-1]["Findings"] += [{title: f"findings/{page}"} for title, page
                                   in re.findall(r"^\| \[(.+)\]\(([a-z0-9_]+\.md)\)", findings, re.MULTILINE)]
    return config


def on_files(files, config):
    """Files of the repository that pages link to, and what those that are pages link to, and so on."""
    waiting = [HOME / "README.md", *(HOME / "docs").rglob("*.md")]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if place := outside(path):
            text = path.read_text(encoding="utf-8") if path.is_file() else "\n".join(
                sorted(each.name for each in path.iterdir()))
            files.append(File.generated(config, place, content=text))
        if path.suffix == ".md":
            found = {target for link in LINK.findall(path.read_text(encoding="utf-8"))
                     if (target := (path.parent / link).resolve()).exists()} - seen
            seen |= found
            waiting += found
    return files


def outside(path: Path) -> str | None:
    """Where a file that is no page of docs/ has its place in the site."""
    name = path.relative_to(HOME).as_posix()
    if name.startswith("docs/") and path.suffix != ".py":
        return None
    return f"source/{name}" if path.suffix == ".md" else f"source/{name}.txt"


def on_page_markdown(markdown, page, config, files):
    """Links lead to these places, and what is folded is Markdown, too."""
    uri = page.file.src_uri
    path = HOME / uri.removeprefix("source/") if uri.startswith("source/") else HOME / "docs" / uri

    def moved(link: re.Match) -> str:
        target = (path.parent / link[1]).resolve()
        if "://" in link[1] or not target.exists():
            return link[1]  # of another site; or a mistake, which mkdocs tells
        place = outside(target) or target.relative_to(HOME / "docs").as_posix()
        return os.path.relpath(place, os.path.dirname(uri) or ".")

    return LINK.sub(moved, markdown).replace("<details>", "<details markdown>")
