"""Builds the site of the documents: `python -m tools.site ZENSICAL`, the program that `./sj docs` installs for it.

build/docs    the documents as they go in: those of `docs/`, those that are made, and those of the root
build/site    the site. A warning of Zensical's, a link that leads nowhere or a page that nobody finds is a failure
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.site.links import problems
from tools.site.reference import reference

ROOT = Path(__file__).parents[2]
PAGES, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
# Documents of the root, and what they are called in the site.
OF_THE_ROOT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>python|sh)(?: no-run)?\n(?P<text>.*?)^ *```$", re.M | re.S)


def prepare() -> None:
    """Write the documents as Zensical takes them."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for name, page in OF_THE_ROOT.items():
        (PAGES / page).write_text((ROOT / name).read_text().replace("](docs/", "]("))
    made = PAGES / "reference"
    made.mkdir(exist_ok=True)
    (made / "python.md").write_text(reference())
    for path in PAGES.rglob("*.md"):
        text = FENCE.sub(_shown, path.read_text())
        for name, page in OF_THE_ROOT.items():
            up = "../" * len(path.relative_to(PAGES).parent.parts)
            text = text.replace(f"](../{up}{name}", f"]({up}{page}")
        path.write_text(text)


def _shown(block: re.Match[str]) -> str:
    """A block without what is said to the tests: that it is not run; and what is a session is called so."""
    language = "pycon" if ">>>" in block["text"] else block["language"]
    return f"{block['indent']}```{language}\n{block['text']}{block['indent']}```"


def build(zensical: str) -> list[str]:
    """Build the site; what is wrong with it."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [zensical, "build", "--clean", "--strict", "--config-file", str(ROOT / "zensical.toml")]
    plain = os.environ | {"NO_COLOR": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=False)
    told = ran.stdout + ran.stderr
    if ran.returncode or re.search(r"warning|error", told, re.I):
        return [told]
    return problems(SITE)


def main(zensical: str) -> int:
    prepare()
    wrong = build(zensical)
    for each in wrong:
        print(each, file=sys.stderr)
    if not wrong:
        print(f"{len(list(SITE.rglob('*.html')))} pages: {SITE.relative_to(ROOT)}/index.html")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
