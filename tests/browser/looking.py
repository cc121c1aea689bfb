"""What can be seen of a page: errors, what sticks out, what lies on top of something else, what a plot says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Boxes that overlap by more than a pixel, of elements that have the same parent.
OVERLAPS = """() => {
  const boxes = (elements) => [...elements].map((each) => [each, each.getBoundingClientRect()])
    .filter(([each, box]) => box.width > 0 && box.height > 0);
  const found = [];
  const check = (elements, what) => {
    const some = boxes(elements);
    some.forEach(([one, a], number) => some.slice(number + 1).forEach(([two, b]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) found.push([what, one.textContent.slice(0, 40), two.textContent.slice(0, 40)]);
    }));
  };
  for (const parent of document.querySelectorAll("main, section, figure, .tiles")) check(parent.children, "parts");
  for (const svg of document.querySelectorAll("svg")) check(svg.querySelectorAll("text"), "text of a picture");
  return found;
}"""
# Texts that stick out of their plot, or of their box in the plan.
OUTSIDE = """() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1))
        found.push(text.textContent);
    }
  }
  for (const svg of document.querySelectorAll(".plan svg")) {
    const boxes = [...svg.querySelectorAll("rect")].map((rect) => rect.getBoundingClientRect());
    for (const text of svg.querySelectorAll("text:not(.rate)")) {
      const box = text.getBoundingClientRect();
      if (box.width && !boxes.some((each) => each.left <= box.left && box.right <= each.right + 0.5
          && each.top <= box.top && box.bottom <= each.bottom + 0.5)) found.push(text.textContent);
    }
  }
  return found;
}"""
# Words of a table that reach into the next cell.
CELLS = """() => [...document.querySelectorAll("th, td")].filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
  .map((cell) => cell.textContent.slice(0, 60))"""
PLOTS = """() => [...document.querySelectorAll("figure.plot")].map((figure) => ({
  title: figure.querySelector("h3").textContent,
  axes: [...figure.querySelectorAll(".role-axis-title text")].map((each) => each.textContent),
  labels: figure.querySelectorAll(".role-axis-label text").length,
  marks: figure.querySelectorAll(".mark-line path, .mark-symbol path").length,
}))"""
COLOURS = """() => {
  const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number); return (r + g + b) / 765; };
  const label = document.querySelector(".role-axis-label text");
  return { paper: light(getComputedStyle(document.body).backgroundColor),
    ink: light(getComputedStyle(document.body).color), label: light(getComputedStyle(label).fill) };
}"""


@contextmanager
def opened(browser: Any, address: str, width: int, scheme: str = "light") -> Iterator[Any]:
    """A page that has drawn its plots; errors on its console, and whatever it asks others for, fail the test."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    page.said = said
    page.on("console", lambda each: said.append(each.text) if each.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda each: None if each.url.startswith((address, "data:")) else said.append(each.url))
    page.goto(address)
    if page.locator("figure.plot").count():
        page.wait_for_function("document.documentElement.dataset.drawn !== undefined")
    yield page
    assert said == []
    context.close()


def check_tables(page: Any, width: int) -> None:
    """Tables that are too wide are scrolled by themselves, and each cell has its words for itself."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelectorAll('td').length") > 0
    assert page.evaluate(CELLS) == []


def check(page: Any, width: int) -> None:
    """Nothing sticks out, nothing lies on something else, and every plot has its axes."""
    check_tables(page, width)
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(OUTSIDE) == []
    plots = page.evaluate(PLOTS)
    assert plots
    for plot in plots:
        assert len(plot["axes"]) == 2, plot
        assert all(plot["axes"]), plot
        assert plot["labels"] >= 4, plot
        assert plot["marks"] >= 1, plot
