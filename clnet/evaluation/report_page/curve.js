"use strict";
// The FROC curve: steps or lines with their bands; dashes and markers distinguish curves without colour.

const PLOT = { width: 560, height: 400, left: 52, right: 14, top: 14, bottom: 46 };
const DASHES = ["", "7 4", "2 4", "10 4 2 4"];

function frocCurve(report) {
  const curves = Object.entries(report.detection).filter(([, at]) => !at.curve.value.includes(null));
  if (!curves.length) {
    byId("curve").append(html("p", { class: "note" }, "No lesions, so no recall to draw."));
    return;
  }
  const [first, last] = [curves[0][1].curve.fpi[0], curves[0][1].curve.fpi.at(-1)];
  const x = (fpi) =>
    PLOT.left + ((PLOT.width - PLOT.left - PLOT.right) * Math.log(fpi / first)) / Math.log(last / first);
  const y = (recall) => PLOT.height - PLOT.bottom - (PLOT.height - PLOT.top - PLOT.bottom) * recall;
  const plot = svg("svg", {
    viewBox: `0 0 ${PLOT.width} ${PLOT.height}`,
    class: "froc",
    role: "img",
    "aria-label": "FROC curve: recall of lesion boxes against false positives per image, with 95% bands",
  });

  for (const recall of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    plot.append(
      svg("line", {
        class: "grid",
        x1: PLOT.left,
        x2: PLOT.width - PLOT.right,
        y1: y(recall),
        y2: y(recall),
      }),
      svg(
        "text",
        { class: "tick", x: PLOT.left - 8, y: y(recall) + 4, "text-anchor": "end" },
        String(100 * recall),
      ),
    );
  }
  for (const rate of report.rates) {
    plot.append(
      svg("line", { class: "grid", x1: x(rate), x2: x(rate), y1: PLOT.top, y2: PLOT.height - PLOT.bottom }),
      svg(
        "text",
        { class: "tick", x: x(rate), y: PLOT.height - PLOT.bottom + 17, "text-anchor": "middle" },
        String(rate),
      ),
    );
  }
  plot.append(
    svg(
      "text",
      {
        class: "axis",
        x: (PLOT.left + PLOT.width - PLOT.right) / 2,
        y: PLOT.height - 8,
        "text-anchor": "middle",
      },
      "false positives per image",
    ),
    svg(
      "text",
      {
        class: "axis",
        transform: `translate(14 ${(PLOT.top + PLOT.height - PLOT.bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle",
      },
      "recall of lesion boxes, %",
    ),
  );

  const path = report.settings.interpolate ? line : steps;
  curves.forEach(([key, { curve, recall }], place) => {
    const series = svg("g", { class: `series series-${place % 4}`, "data-iou": key });
    if (!curve.low.includes(null)) {
      const upper = path(curve.fpi, curve.high, x, y);
      const lower = path(curve.fpi, curve.low, x, y).reverse();
      series.append(svg("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
    }
    series.append(
      svg("polyline", {
        class: "line",
        points: path(curve.fpi, curve.value, x, y).join(" "),
        "stroke-dasharray": DASHES[place % 4],
      }),
    );
    for (const rate of report.rates) series.append(mark(place, x(rate), y(recall[rateName(rate)].value)));
    plot.append(series);
  });

  const top = PLOT.height - PLOT.bottom - 14 - 20 * (curves.length - 1);
  curves.forEach(([key], place) => {
    const [left, row] = [PLOT.width - PLOT.right - 128, top + 20 * place];
    plot.append(
      svg(
        "g",
        { class: `series series-${place % 4}` },
        svg("line", {
          class: "line",
          x1: left,
          x2: left + 34,
          y1: row,
          y2: row,
          "stroke-dasharray": DASHES[place % 4],
        }),
        mark(place, left + 17, row),
        svg("text", { class: "name", x: left + 44, y: row + 4 }, report.overlaps[key]),
      ),
    );
  });
  byId("curve").append(plot, html("figcaption", {}, `FROC curve, by ${report.protocol}. The band is the 95% interval.`));
}

const line = (fpi, recall, x, y) =>
  recall.map((value, place) => `${x(fpi[place]).toFixed(1)},${y(value).toFixed(1)}`);

function steps(fpi, recall, x, y) {
  return line(fpi, recall, x, y).flatMap((here, place) =>
    place ? [`${x(fpi[place]).toFixed(1)},${y(recall[place - 1]).toFixed(1)}`, here] : [here],
  );
}

function mark(place, x, y) {
  return place % 2
    ? svg("rect", { class: "mark", x: x - 4, y: y - 4, width: 8, height: 8 })
    : svg("circle", { class: "mark", cx: x, cy: y, r: 4.5 });
}
