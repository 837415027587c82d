// Links as curves across the gap, from the inner edge of the CC box to the inner edge of the MLO box.

import { isLinked } from "./labelling.js";
import { TAG, colourOf, widthOf } from "./marks.js";

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Where a curve meets a box on the stage; at the pane's edge if the box is out of sight.
function anchor(pane, box, side) {
  const { width, height } = pane.viewport.pane;
  const [left, top, right, bottom] = pane.viewport.boxToScreen(box);
  return {
    x: pane.left + clamp(side === "right" ? right : left, 0, width),
    y: pane.top + (clamp(top, 0, height) + clamp(bottom, 0, height)) / 2,
    isHidden: right < 0 || left > width || bottom < 0 || top > height,
  };
}

function curve(start, end) {
  const bend = Math.max(Math.abs(end.x - start.x) / 2, 30);
  return `M ${start.x} ${start.y} C ${start.x + bend} ${start.y} ${end.x - bend} ${end.y} ${end.x} ${end.y}`;
}

function link(panes, boxes, classes, attributes, words) {
  const [start, end] = [anchor(panes.cc, boxes.cc, "right"), anchor(panes.mlo, boxes.mlo, "left")];
  const d = curve(start, end);
  const hidden = start.isHidden || end.isHidden;
  return svg(
    "g",
    { class: `link ${classes}${hidden ? " hidden" : ""}` },
    svg("path", { class: "halo", d }),
    svg("path", { class: "edge", ...attributes, d }),
    words ? chip(words, (start.x + end.x) / 2, (start.y + end.y) / 2) : null,
    attributes["data-kind"] === "link"
      ? svg("path", { class: "grip", ...attributes, "data-kind": "link-grip", d })
      : null,
  );
}

function chip(words, x, y) {
  const width = widthOf(words);
  return svg(
    "g",
    { class: "chip" },
    svg("rect", { x: x - width / 2, y: y - TAG / 2, width, height: TAG, rx: TAG / 2 }),
    svg("text", { x, y: y + 4.5, "text-anchor": "middle" }, words),
  );
}

export function drawLinks(desk, panes, pointer) {
  if (panes.cc.isEmpty || panes.mlo.isEmpty) return [];
  const { labelling } = desk;
  const drawn = desk.openFindings
    .filter((finding) => finding.cc && finding.mlo)
    .map((finding) =>
      link(
        panes,
        { cc: finding.cc.box, mlo: finding.mlo.box },
        "model",
        { "data-kind": "model-link", "data-finding": finding.lesion_id },
        finding.link_score === null ? "" : `M${finding.lesion_id} link ${scoreText(finding.link_score)}`,
      ),
    );
  for (const [lesion, box] of labelling.cc) {
    if (!isLinked(labelling, lesion)) continue;
    const isHeld = desk.selected?.lesion === lesion;
    drawn.push(
      link(
        panes,
        { cc: box, mlo: labelling.mlo.get(lesion) },
        `${colourOf(lesion)}${isHeld ? " held" : ""}`,
        { "data-kind": "link", "data-lesion": lesion },
        "",
      ),
    );
  }
  if (desk.linkFrom && pointer) drawn.push(loose(desk, panes, pointer));
  return drawn;
}

// An unfinished link: from the first box to the pointer.
function loose(desk, panes, pointer) {
  const { view, lesion } = desk.linkFrom;
  const start = anchor(panes[view], desk.labelling[view].get(lesion), view === "cc" ? "right" : "left");
  const d = view === "cc" ? curve(start, pointer) : curve(pointer, start);
  return svg("g", { class: `link loose ${colourOf(lesion)}` }, svg("path", { class: "edge", d }));
}
