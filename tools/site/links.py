"""What is wrong with a site: links that lead nowhere, pages that none leads to, whatever is loaded from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href")}
# Relations of a `link` that a browser only knows of, and does not load.
ONLY_TOLD = {"canonical", "next", "prev", "alternate"}


@dataclass
class Page(HTMLParser):
    """A page as far as links go: its anchors, where it links to, and what it loads."""

    text: str
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if "id" in told:
            self.anchors.add(told["id"])
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if told.get("rel") not in ONLY_TOLD:
            self.loads += [told[name] for name in told if (tag, name) in LOADED]


def problems(site: Path) -> list[str]:
    """A sentence for everything that is wrong, page by page."""
    pages = {path.resolve(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    told: list[str] = []
    found = {(site / "index.html").resolve(), (site / "404.html").resolve()}
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads:
                    told.append(f"{where} loads {link}: a page must do without the network")
                continue
            if where.name == "404.html":
                continue  # served under any address, so its links are absolute
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if target != path:
                found.add(target)
            if not target.exists():
                told.append(f"{where} links to {link}, which does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                told.append(f"{where} links to {link}, which has no such part")
    told += [f"no page leads to {path.relative_to(site.resolve())}" for path in pages if path not in found]
    return told
