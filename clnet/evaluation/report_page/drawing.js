"use strict";
// A pair as one picture: CC and MLO side by side, lesions of the truth dashed, detections solid, links as lines.

const VIEWS = ["cc", "mlo"];
const HEIGHT = 1000; // units of the higher view
const GAP = 56; // between the views
const BIN = { width: 150, height: 44, below: 16 }; // the dustbin, under each view
const MARKS = { hit: "✓", false_positive: "✗", duplicate: "≈" };

// Where each view and its dustbin stand, and what maps a box of a view to [left, top, right, bottom] there.
function layout(pair, withBins) {
  const present = VIEWS.map((name) => pair.views[name]).filter(Boolean);
  const scale = HEIGHT / Math.max(...present.map((view) => view.rows));
  const blank = 0.6 * HEIGHT;
  const frames = {};
  let left = 0;
  for (const name of VIEWS) {
    const view = pair.views[name];
    const [width, height] = view ? [view.columns * scale, view.rows * scale] : [blank, HEIGHT];
    const binLeft = left + width / 2 - BIN.width / 2;
    frames[name] = {
      left,
      width,
      height,
      bin: [binLeft, HEIGHT + BIN.below, binLeft + BIN.width, HEIGHT + BIN.below + BIN.height],
      place: (box) => box.map((edge, side) => edge * scale + (side % 2 ? 0 : frames[name].left)),
    };
    left += width + GAP;
  }
  return { frames, width: left - GAP, height: HEIGHT + (withBins ? BIN.below + BIN.height + 4 : 0) };
}

// choice: {threshold, linkScore, truth, detections, link, error, labels, alone}; link and error are those held, or
// null. Alone: nothing but what takes part in the error, and the truth.
function drawPair(pair, choice) {
  const { link, error, labels } = choice;
  const links = shownLinks(pair, choice);
  const attention = link?.attention ?? null;
  const withBins = Boolean(attention) || links.some((each) => each.cc === null || each.mlo === null);
  const { frames, width, height } = layout(pair, withBins);
  const picture = svg("svg", {
    viewBox: `-4 -4 ${width + 8} ${height + 8}`,
    class: "pair",
    role: "img",
    "aria-label": describe(pair, choice, links),
  });

  for (const name of VIEWS) picture.append(background(pair.views[name], frames[name], name));
  if (withBins) for (const name of VIEWS) picture.append(dustbin(frames[name], name, attention));
  if (link) picture.append(linkLine(pair, link, frames, labels, true, choice));
  else for (const each of links) picture.append(linkLine(pair, each, frames, labels, false, choice));

  for (const name of VIEWS) {
    const view = pair.views[name];
    if (!view) continue;
    for (const index of shownDetections(view, name, choice, attention)) {
      const involved = link ? link[name] === index : error ? error[name] === index : true;
      picture.append(detection(view, name, index, frames[name], { attention, involved, labels }));
    }
    if (!choice.truth) continue;
    for (const lesion of view.lesions) {
      const involved = !error || error.lesion === null || error.lesion === lesion.number;
      picture.append(marked(lesion, name, frames[name], involved && !link, labels));
    }
  }
  return picture;
}

function shownDetections(view, name, { threshold, detections, link, error, alone }, attention) {
  if (!detections) return [];
  return view.scores
    .map((_, index) => index)
    .filter((index) =>
      attention
        ? attention[name][index] >= 0.005 || link[name] === index
        : link
          ? link[name] === index
          : (view.scores[index] > threshold && !alone) || error?.[name] === index,
    );
}

function shownLinks(pair, { threshold, linkScore, detections, error, alone }) {
  if (!detections) return [];
  return pair.links.filter(
    (link) =>
      link.score >= linkScore &&
      (!alone || VIEWS.every((name) => link[name] === error[name])) &&
      VIEWS.every((name) => link[name] === null || pair.views[name].scores[link[name]] > threshold),
  );
}

function describe(pair, choice, links) {
  const found = VIEWS.map((name) =>
    pair.views[name]
      ? `${name.toUpperCase()}: ${plural(pair.views[name].lesions.length, "lesion")}, ` +
        `${plural(shownDetections(pair.views[name], name, { ...choice, link: null, error: null }, null).length, "detection")}`
      : `${name.toUpperCase()}: no such view`,
  );
  return `Pair ${pair.number}. ${found.join(". ")}. ${plural(links.length, "link")}.`;
}

function background(view, frame, name) {
  const group = svg(
    "g",
    {},
    svg("rect", { class: "frame", x: frame.left, y: 0, width: frame.width, height: frame.height }),
  );
  if (view?.picture) {
    group.append(
      svg("image", {
        href: `data:image/jpeg;base64,${view.picture}`,
        x: frame.left,
        y: 0,
        width: frame.width,
        height: frame.height,
        preserveAspectRatio: "none",
      }),
    );
  } else {
    group.append(
      svg(
        "text",
        { class: "absent", x: frame.left + frame.width / 2, y: frame.height / 2, "text-anchor": "middle" },
        view ? "no picture" : "no such view",
      ),
    );
  }
  group.append(
    svg(
      "text",
      { class: "view-name", x: frame.left + frame.width - 14, y: frame.height - 16, "text-anchor": "end" },
      name.toUpperCase(),
    ),
  );
  return group;
}

function dustbin(frame, name, attention) {
  const weight = attention?.[name].at(-1);
  const [left, top, right, bottom] = frame.bin;
  return svg(
    "g",
    { class: "dustbin", "data-kind": "dustbin", "data-view": name, "data-weight": weight },
    svg("rect", { x: left, y: top, width: right - left, height: bottom - top, rx: 8 }),
    weight === undefined
      ? null
      : svg("rect", {
          class: "weight",
          x: left,
          y: top,
          width: right - left,
          height: bottom - top,
          rx: 8,
          "fill-opacity": weight,
        }),
    svg(
      "text",
      { x: (left + right) / 2, y: bottom - 14, "text-anchor": "middle" },
      weight === undefined ? "dustbin" : `dustbin ${weight.toFixed(2)}`,
    ),
  );
}

function outline([left, top, right, bottom], attributes) {
  const shape = { x: left, y: top, width: Math.max(right - left, 1), height: Math.max(bottom - top, 1) };
  return [svg("rect", { class: "halo", ...shape }), svg("rect", { ...attributes, ...shape })];
}

function detection(view, name, index, frame, { attention, involved, labels }) {
  const outcome = view.outcomes[index];
  const box = frame.place(view.boxes[index]);
  const weight = attention?.[name][index];
  const text = attention
    ? weight >= 0.05
      ? weight.toFixed(2)
      : ""
    : `${MARKS[outcome]} ${scoreText(view.scores[index])}`;
  const above = box[1] > 30;
  return svg(
    "g",
    { class: `detection ${outcome}${involved ? "" : " aside"}${attention ? " attended" : ""}` },
    attention
      ? svg("rect", {
          class: "weight",
          x: box[0],
          y: box[1],
          width: box[2] - box[0],
          height: box[3] - box[1],
          "fill-opacity": weight,
        })
      : null,
    outline(box, {
      class: "edge",
      "data-kind": "detection",
      "data-view": name,
      "data-index": index,
      "data-outcome": outcome,
      "data-weight": weight,
    }),
    labels && text ? svg("text", { x: box[0], y: above ? box[1] - 8 : box[1] + 26 }, text) : null,
  );
}

function marked(lesion, name, frame, involved, labels) {
  const box = frame.place(lesion.box);
  return svg(
    "g",
    { class: `marked${involved ? "" : " aside"}` },
    outline(box, { class: "edge", "data-kind": "lesion", "data-view": name, "data-lesion": lesion.number }),
    labels ? svg("text", { x: box[0], y: box[3] + 26 }, `lesion ${lesion.number}`) : null,
  );
}

// From the inner edge of the CC box to the inner edge of the MLO box; the dustbin is the box of what is not seen.
function linkLine(pair, link, frames, labels, held, choice) {
  const ends = Object.fromEntries(
    VIEWS.map((name) => [
      name,
      link[name] === null ? frames[name].bin : frames[name].place(pair.views[name].boxes[link[name]]),
    ]),
  );
  const line = {
    x1: ends.cc[2],
    y1: (ends.cc[1] + ends.cc[3]) / 2,
    x2: ends.mlo[0],
    y2: (ends.mlo[1] + ends.mlo[3]) / 2,
  };
  const verdict = link.right === null ? "" : link.right ? " ✓" : " ✗";
  return svg(
    "g",
    { class: `link ${link.right === false ? "wrong" : "right"}${held ? " held" : ""}` },
    svg("line", { class: "halo", ...line }),
    svg("line", { class: "edge", "data-kind": "link", "data-index": pair.links.indexOf(link), ...line }),
    labels
      ? svg(
          "text",
          { x: (line.x1 + line.x2) / 2, y: (line.y1 + line.y2) / 2 - 8, "text-anchor": "middle" },
          `link ${scoreText(link.score)}${verdict}`,
        )
      : null,
    choice.hold ? svg("line", { class: "grip", ...line, onclick: () => choice.hold(link) }) : null,
  );
}
