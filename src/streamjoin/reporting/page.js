"use strict";
// Draws every plot of the page from the specification beside it; a page that is served loads itself anew.
(() => {
  const options = { actions: false, renderer: "svg" };
  let views = [];
  const draw = async () => {
    views = await Promise.all([...document.querySelectorAll("figure.plot")].map((figure) =>
      vegaEmbed(figure.querySelector(".drawn"), JSON.parse(figure.querySelector("script").textContent), options)));
  };
  const drawn = () => draw().then(() => { document.documentElement.dataset.drawn = String(Date.now()); });
  const told = document.querySelector('meta[name="refresh-seconds"]');
  const seconds = told === null ? null : Number(told.content);
  const again = async () => {
    let asked;
    try {
      asked = await fetch("main", { cache: "no-store" });
    } catch { // whoever served it is gone: what was seen last stays
      document.title = `${document.title} (no longer served)`;
      document.querySelector("h1").textContent += " (no longer served)";
      return;
    }
    if (!asked.ok) { // a query that is being started again cannot be asked
      setTimeout(again, 1000 * seconds);
      return;
    }
    const found = new DOMParser().parseFromString(await asked.text(), "text/html").querySelector("main");
    const before = document.querySelector("main");
    // Heights stay until the new plots are drawn, so that whoever reads does not lose the place.
    before.style.minHeight = `${before.offsetHeight}px`;
    const place = window.scrollY;
    views.forEach((each) => each.finalize());
    before.replaceChildren(...found.childNodes);
    document.title = document.querySelector("h1").textContent;
    await drawn();
    before.style.minHeight = "";
    window.scrollTo(0, place);
    setTimeout(again, 1000 * seconds);
  };
  drawn().then(() => { if (seconds !== null) setTimeout(again, 1000 * seconds); });
})();
