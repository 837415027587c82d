"use strict";
// The panel beside the picture: errors and links to hold, and the attention of a held link.

function pairFacts(report, pair, state, change) {
  const links = [...shownLinks(pair, { ...state, detections: true })].sort((a, b) => b.score - a.score);
  const holdable = (held, words, more, hold) =>
    html(
      "li",
      {},
      html("button", { type: "button", class: "plain", "aria-pressed": String(held), onclick: hold }, words),
      html("small", {}, more),
    );
  const end = (name, index) =>
    `${name.toUpperCase()} ${index === null ? "dustbin" : scoreText(pair.views[name].scores[index])}`;
  return [
    html(
      "h3",
      {},
      `Pair ${pair.number}`,
      html("small", {}, pair.laterality === "L" ? "left breast" : "right breast"),
    ),
    html("h4", {}, `Errors at ${report.settings.operating_rate} FP/image`),
    pair.errors.length
      ? html(
          "ul",
          { class: "holdables", id: "pair-errors" },
          pair.errors.map((error) =>
            holdable(state.error === error, spoken(error.type), errorWords(error), () =>
              change({ error: state.error === error ? null : error, link: null }),
            ),
          ),
        )
      : html("p", { class: "about" }, "none"),
    html("h4", {}, "Links"),
    links.length
      ? html(
          "ul",
          { class: "holdables", id: "pair-links" },
          links.map((link) =>
            holdable(
              state.link === link,
              `${end("cc", link.cc)} – ${end("mlo", link.mlo)}`,
              `link ${scoreText(link.score)} ${link.right === null ? "" : link.right ? "✓ right" : "✗ wrong"}`,
              () => change({ link: state.link === link ? null : link, error: null }),
            ),
          ),
        )
      : html("p", { class: "about" }, "none at this score"),
    ...(state.link ? attentionFacts(pair, state.link) : []),
  ];
}

function errorWords(error) {
  return [
    error.view?.toUpperCase(),
    error.lesion === null ? null : `lesion ${error.lesion}`,
    error.score === null ? null : `score ${scoreText(error.score)}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function attentionFacts(pair, link) {
  if (!link.attention)
    return [
      html("p", { class: "about", id: "attention" }, "These findings do not include the linker's attention."),
    ];
  const bars = VIEWS.map((name) => {
    const scores = pair.views[name]?.scores ?? [];
    const weights = link.attention[name].map((weight, index) => ({
      weight,
      name: index < scores.length ? `score ${scoreText(scores[index])}` : "dustbin",
      mine: index === link[name],
    }));
    const most = weights
      .filter(({ weight, mine }) => weight >= 0.005 || mine)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, 6);
    return html(
      "div",
      {},
      html("h5", {}, name.toUpperCase()),
      html(
        "dl",
        { class: "weights" },
        most.map((entry) => [
          html("dt", {}, entry.name),
          html(
            "dd",
            {},
            html("div", { class: "track" }, html("div", { style: `width:${100 * entry.weight}%` })),
            html("span", {}, entry.weight.toFixed(2)),
          ),
        ]),
      ),
    );
  });
  return [
    html(
      "div",
      { id: "attention", class: "attention" },
      html("h4", {}, "Where the linker looked"),
      html("div", { class: "two" }, bars),
      html(
        "p",
        { class: "about" },
        "Attention of the link query on the detections of each view and on the dustbin.",
      ),
    ),
  ];
}
