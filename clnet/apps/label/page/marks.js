// The boxes of one view as SVG: the label's solid in the colour of their lesion, the model's dashed.

import { area } from "./boxes.js";
import { isLinked, lesionAt } from "./labelling.js";

const COLOURS = 6; // classes lesion-0 … in marks.css
const HANDLE = 9;
export const TAG = 19; // height of a tag
const ROOM = 40; // a side shorter than this has no handle in its middle
const GRIPS = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = '600 12px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

export function colourOf(lesion) {
  const letters = [...lesion].map((letter) => letter.codePointAt(0));
  const place = Number.isInteger(Number(lesion)) ? lesion - 1 : letters.reduce((sum, code) => sum + code, 0);
  return `lesion-${((place % COLOURS) + COLOURS) % COLOURS}`;
}

export function widthOf(words) {
  return ruler.measureText(words).width + 12;
}

function shape([left, top, right, bottom]) {
  return { x: left, y: top, width: Math.max(right - left, 1), height: Math.max(bottom - top, 1) };
}

// A text tag at a corner of a box, where the pane has room for it.
function tag(words, [left, top, , bottom], below, pane, attributes = {}, ...more) {
  const width = widthOf(words);
  const x = Math.min(Math.max(left - 1, 0), pane.width - width);
  const free = below ? bottom + 3 + TAG < pane.height : top - TAG - 3 > 0;
  const y = below ? (free ? bottom + 3 : bottom - TAG - 3) : free ? top - TAG - 3 : top + 3;
  return svg(
    "g",
    { class: "tag", ...attributes },
    svg("rect", { x, y, width, height: TAG, rx: 4 }),
    svg("text", { x: x + 6, y: y + 14 }, words),
    more,
  );
}

function handles(box, view) {
  const [left, top, right, bottom] = box;
  const roomy = { across: right - left >= ROOM, down: bottom - top >= ROOM };
  return GRIPS.filter((grip) => grip.length === 2 || (/[ns]/.test(grip) ? roomy.across : roomy.down)).map(
    (grip) => {
      const x = grip.includes("w") ? left : grip.includes("e") ? right : (left + right) / 2;
      const y = grip.includes("n") ? top : grip.includes("s") ? bottom : (top + bottom) / 2;
      return svg("rect", {
        ...shape([x - HANDLE / 2, y - HANDLE / 2, x + HANDLE / 2, y + HANDLE / 2]),
        class: `handle grip-${grip}`,
        rx: 2,
        "data-kind": "handle",
        "data-view": view,
        "data-grip": grip,
      });
    },
  );
}

function labelBox(desk, pane, lesion, box) {
  const view = pane.name;
  const place = pane.viewport.boxToScreen(box);
  const isHeld = desk.isSelected(view, lesion);
  const isFrom = desk.linkFrom?.view === view && desk.linkFrom.lesion === lesion;
  const names = ["box", colourOf(lesion), isHeld && "held", isFrom && "from"];
  return svg(
    "g",
    { class: names.filter(Boolean).join(" ") },
    svg("rect", { class: "halo", ...shape(place) }),
    svg(
      "rect",
      { class: "edge", "data-kind": "box", "data-view": view, "data-lesion": lesion, ...shape(place) },
      svg(
        "title",
        {},
        `lesion ${lesion}, ${isLinked(desk.labelling, lesion) ? "linked" : "in this view only"}`,
      ),
    ),
    tag(lesion, place, false, pane.viewport.pane),
    isHeld && desk.tool !== "link" ? handles(place, view) : null,
  );
}

function modelBox(pane, finding) {
  const place = pane.viewport.boxToScreen(finding[pane.name].box);
  const words = `M${finding.lesion_id} ${scoreText(finding[pane.name].score)}`;
  const named = { "data-view": pane.name, "data-finding": finding.lesion_id };
  return svg(
    "g",
    { class: "model" },
    svg("rect", { class: "halo", ...shape(place) }),
    svg("rect", { class: "edge", "data-kind": "model", ...named, ...shape(place) }),
    tag(
      words,
      place,
      true,
      pane.viewport.pane,
      { "data-kind": "accept", ...named },
      svg("title", {}, "Accept"),
    ),
  );
}

// Small boxes are drawn above large ones and the selected box above all, so that each can be reached.
export function drawMarks(desk, pane) {
  if (pane.isEmpty) return [];
  const boxes = [...desk.labelling[pane.name]]
    .sort((one, two) => area(two[1]) - area(one[1]))
    .sort((one, two) => desk.isSelected(pane.name, one[0]) - desk.isSelected(pane.name, two[0]));
  return [
    desk.openFindings
      .filter(({ [pane.name]: end }) => end && lesionAt(desk.labelling, pane.name, end.box) === null)
      .map((finding) => modelBox(pane, finding)),
    boxes.map(([lesion, box]) => labelBox(desk, pane, lesion, box)),
  ].flat();
}
