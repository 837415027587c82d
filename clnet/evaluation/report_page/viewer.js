"use strict";
// The viewer of pairs: which of them, from which score on, and which link or error is held.

function makeViewer(report) {
  const [low, high] = report.viewer.score_range;
  const floor = low - Math.max(1e-6, (high - low) * 1e-6); // just below the lowest score: everything is above it
  const linkScoreOf = (place) => (place === 0 ? -Infinity : place / 100); // logits may be below 0
  const thresholdOf = (place) => (place === 0 ? floor : low + ((high - low) * place) / 200);
  const operating = report.errors.score_above ?? floor;
  const state = {
    filter: "all",
    place: 0,
    threshold: operating,
    linkScore: report.settings.link_score,
    truth: true,
    detections: true,
    link: null,
    error: null,
  };
  let pair = null;

  const filters = {
    all: ["all", () => true],
    any: ["with any error", (shown) => shown.errors.length > 0],
    none: ["without errors", (shown) => shown.errors.length === 0],
    ...Object.fromEntries(
      Object.keys(report.error_types).map((type) => [
        type,
        [spoken(type), (shown) => shown.errors.some((error) => error.type === type)],
      ]),
    ),
  };
  const chosen = () =>
    report.shown.map((_, place) => place).filter((place) => filters[state.filter][1](report.shown[place]));

  function change(changes) {
    Object.assign(state, changes);
    const places = chosen();
    state.place = Math.min(Math.max(state.place, 0), Math.max(places.length - 1, 0));
    const wanted = places[state.place];
    if (wanted === undefined) pair = null;
    else if (pair?.place !== wanted) pair = { ...readJson(`pair-${wanted}`), place: wanted };
    draw(places);
  }

  function draw(places) {
    byId("filter").value = state.filter;
    byId("position").textContent = pair
      ? `Pair ${pair.number} · ${state.place + 1} of ${places.length}`
      : "no pair";
    byId("previous").disabled = state.place === 0;
    byId("next").disabled = state.place >= places.length - 1;
    byId("threshold").value = Math.round((200 * (state.threshold - low)) / (high - low || 1));
    byId("threshold-value").textContent =
      state.threshold <= floor ? "all" : `above ${scoreText(state.threshold)}`;
    byId("link-score").value = Math.round(100 * Math.max(state.linkScore, 0));
    byId("link-score-value").textContent =
      state.linkScore === -Infinity ? "all" : `from ${state.linkScore.toFixed(2)}`;
    byId("show-truth").checked = state.truth;
    byId("show-detections").checked = state.detections;
    for (const button of byId("rates").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", Number(button.dataset.threshold) === state.threshold);
    }
    if (!pair) {
      byId("picture").replaceChildren(html("p", { class: "note" }, "No pair is like that."));
      byId("facts").replaceChildren();
      return;
    }
    byId("picture").replaceChildren(
      drawPair(pair, {
        ...state,
        labels: true,
        hold: (link) => change({ link: state.link === link ? null : link, error: null }),
      }),
    );
    // The buttons are made anew; whoever had one in focus keeps it.
    const focused = [...byId("facts").querySelectorAll("button")].indexOf(document.activeElement);
    byId("facts").replaceChildren(...pairFacts(report, pair, state, change));
    byId("facts").querySelectorAll("button")[focused]?.focus();
  }

  const step = (by) => change({ place: state.place + by, link: null, error: null });
  const turn = (items, held) => items[(items.indexOf(held) + 1) % items.length] ?? null;
  const shift = (by) => {
    const place = Math.min(Math.max(Number(byId("threshold").value) + by, 0), 200);
    change({ threshold: thresholdOf(place), link: null });
  };
  const keys = {
    ArrowRight: () => step(1),
    n: () => step(1),
    ArrowLeft: () => step(-1),
    p: () => step(-1),
    "+": () => shift(2),
    "=": () => shift(2),
    "-": () => shift(-2),
    "−": () => shift(-2),
    g: () => change({ truth: !state.truth }),
    d: () => change({ detections: !state.detections, link: null }),
    l: () =>
      pair &&
      change({
        link: turn(shownLinks(pair, { ...state, detections: true }), state.link),
        error: null,
        detections: true,
      }),
    e: () => pair && change({ error: turn(pair.errors, state.error), link: null }),
    Escape: () => change({ link: null, error: null }),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    // Arrows and letters belong to a control that uses them.
    if (event.target.matches("select") || (event.key.startsWith("Arrow") && event.target.matches("input")))
      return;
    event.preventDefault();
    keys[event.key]();
  });

  byId("filter").append(
    ...Object.entries(filters).map(([key, [name, keeps]]) =>
      html("option", { value: key }, `${name} (${report.shown.filter(keeps).length})`),
    ),
  );
  byId("filter").addEventListener("change", (event) =>
    change({ filter: event.target.value, place: 0, link: null, error: null }),
  );
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("threshold").addEventListener("input", (event) =>
    change({ threshold: thresholdOf(Number(event.target.value)), link: null }),
  );
  byId("link-score").addEventListener("input", (event) =>
    change({ linkScore: linkScoreOf(Number(event.target.value)), link: null }),
  );
  byId("show-truth").addEventListener("change", (event) => change({ truth: event.target.checked }));
  byId("show-detections").addEventListener("change", (event) =>
    change({ detections: event.target.checked, link: null }),
  );
  byId("rates").append(...rateButtons(report, floor, (threshold) => change({ threshold, link: null })));
  byId("viewer-about").textContent = viewerWords(report);
  byId("legend").append(...legend());
  if (!report.shown.length) byId("controls").hidden = true;
  change({});

  // Show one error of the gallery.
  return function open(place, errorNumber) {
    change({ filter: "all", place, threshold: operating, truth: true, detections: true, link: null });
    change({ error: pair.errors[errorNumber] });
    byId("viewer").scrollIntoView();
    byId("viewer").focus({ preventScroll: true });
  };
}

function rateButtons(report, floor, set) {
  const [first] = Object.values(report.detection);
  return report.rates
    .map((rate) => {
      const threshold = first.score_above[rateName(rate)] ?? floor;
      return html(
        "button",
        {
          type: "button",
          "data-threshold": threshold,
          "aria-label": `${rate} false positives per image`,
          onclick: () => set(threshold),
        },
        rateName(rate),
      );
    })
    .concat(html("span", {}, "FP/image"));
}

function viewerWords(report) {
  const { pairs, views, pictures } = report.viewer;
  const which =
    report.shown.length < pairs
      ? `${number(report.shown.length)} of ${plural(pairs, "pair")}, those with the worst errors first.`
      : `${pairs === 1 ? "The one pair" : `All ${plural(pairs, "pair")}`}, the worst errors first.`;
  if (pictures === views) return which;
  return pictures === 0
    ? `${which} The images were not found, so the boxes are shown without them.`
    : `${which} ${number(views - pictures)} of ${plural(views, "image")} could not be read; there the boxes are shown alone.`;
}

function legend() {
  const sample = (className, words) =>
    html(
      "span",
      {},
      svg(
        "svg",
        { viewBox: "0 0 30 18", class: "sample", "aria-hidden": "true" },
        svg(
          "g",
          { class: className },
          className.startsWith("link")
            ? svg("line", { class: "edge", x1: 2, x2: 28, y1: 9, y2: 9 })
            : svg("rect", { class: "edge", x: 3, y: 3, width: 24, height: 12 }),
        ),
      ),
      words,
    );
  return [
    sample("marked", "lesion of the truth (dashed)"),
    sample("detection hit", "✓ detection that hits it"),
    sample("detection false_positive", "✗ false positive"),
    sample("detection duplicate", "≈ another detection on a lesion"),
    sample("link right", "link"),
    sample("link wrong", "✗ wrong link (dotted)"),
  ];
}
