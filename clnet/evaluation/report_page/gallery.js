"use strict";
// Examples of one type of error, small; a click opens the pair in the viewer.

const EXAMPLES = 6;

function makeGallery(report, open) {
  // Pictures are read when the gallery is first seen, not when the page opens.
  let wanted = null;
  let seen = false;

  function show() {
    const examples = report.shown.flatMap((shown, place) => shown.errors.map((error, number) => ({ error, number, place, pair: shown.number })))
      .filter(({ error }) => error.type === wanted)
      .sort((a, b) => (b.error.score ?? Infinity) - (a.error.score ?? Infinity) || a.place - b.place);
    const total = report.errors.counts[wanted];
    byId("gallery-title").textContent = spoken(wanted);
    byId("gallery").replaceChildren(...examples.slice(0, EXAMPLES).map((example) => card(report, example, open)));
    byId("gallery-about").textContent = !examples.length ? "None of them is among the pairs shown."
      : examples.length <= EXAMPLES && examples.length === total ? `All ${number(total)} of them.`
        : `${number(Math.min(EXAMPLES, examples.length))} of ${number(total)}; the viewer, filtered by this type, has ${examples.length === total ? "all" : number(examples.length)}.`;
    for (const button of byId("errors-table").querySelectorAll("button")) button.setAttribute("aria-pressed", button.dataset.type === wanted);
  }

  const watcher = new IntersectionObserver((entries) => {
    if (seen || !entries.some((entry) => entry.isIntersecting)) return;
    seen = true;
    if (wanted) show();
  });
  watcher.observe(byId("errors"));
  window.addEventListener("beforeprint", () => wanted && show());

  return function choose(type) {
    wanted = type;
    if (!type) byId("gallery-about").textContent = "No errors: there is nothing to show.";
    else if (seen) show();
  };
}

function card(report, { error, number, place, pair }, open) {
  const choice = { threshold: report.errors.score_above ?? -Infinity, linkScore: report.settings.link_score, truth: true, detections: true, link: null, error, labels: false, alone: true };
  const words = [`pair ${pair}`, errorWords(error)].filter(Boolean).join(" · ");
  return html("button", { type: "button", class: "card", "aria-label": `Open ${words} in the viewer`, onclick: () => open(place, number) },
    drawPair(readJson(`pair-${place}`), choice), html("span", {}, words));
}
