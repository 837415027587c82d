"use strict";
// Examples of one type of error, small; a click opens the pair in the viewer.

const EXAMPLES = 6;

// Returns what shows a type. The first type with errors is shown when the gallery comes into sight, so that the
// page opens without reading pictures for it.
function makeGallery(report, open) {
  const first = Object.keys(report.errors.counts).find((type) => report.errors.counts[type] > 0);
  let chosen = null;

  function choose(type) {
    chosen = type;
    const examples = report.shown
      .flatMap((shown, place) =>
        shown.errors.map((error, number) => ({ error, number, place, pair: shown.number })),
      )
      .filter(({ error }) => error.type === type)
      .sort((a, b) => (b.error.score ?? Infinity) - (a.error.score ?? Infinity) || a.place - b.place);
    byId("gallery-title").textContent = spoken(type);
    byId("gallery").replaceChildren(
      ...examples.slice(0, EXAMPLES).map((example) => card(report, example, open)),
    );
    byId("gallery-about").textContent = galleryWords(examples.length, report.errors.counts[type]);
    for (const button of byId("errors-table").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", button.dataset.type === type);
    }
  }

  if (!first) {
    byId("gallery-about").textContent = "No errors to show.";
    return choose;
  }
  const chooseFirst = () => chosen ?? choose(first);
  new IntersectionObserver((entries, watcher) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    chooseFirst();
  }).observe(byId("errors"));
  window.addEventListener("beforeprint", chooseFirst);
  return choose;
}

function galleryWords(shown, total) {
  if (!shown) return "None of them is among the pairs shown.";
  if (shown === total && total <= EXAMPLES)
    return total === 1 ? "The only one." : `All ${number(total)} of them.`;
  const more = shown === total ? "all" : number(shown);
  return `${number(Math.min(EXAMPLES, shown))} of ${number(total)}; the viewer, filtered by this type, has ${more}.`;
}

function card(report, { error, number, place, pair }, open) {
  const choice = {
    threshold: report.errors.score_above ?? -Infinity,
    linkScore: report.settings.link_score,
    truth: true,
    detections: true,
    link: null,
    error,
    labels: false,
    alone: true,
  };
  const words = [`pair ${pair}`, errorWords(error)].filter(Boolean).join(" · ");
  return html(
    "button",
    {
      type: "button",
      class: "card",
      "aria-label": `Open ${words} in the viewer`,
      onclick: () => open(place, number),
    },
    drawPair(readJson(`pair-${place}`), choice),
    html("span", {}, words),
  );
}
