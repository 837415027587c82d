// The stage: both panes, and one drawing of boxes and links above them.

import { between } from "./boxes.js";
import { drawLinks } from "./links.js";
import { VIEWS, lesionsOf, otherView } from "./labelling.js";
import { drawMarks } from "./marks.js";
import { Pane } from "./pane.js";

export class Stage {
  constructor(desk, grey) {
    this.desk = desk;
    this.grey = grey;
    this.element = byId("stage");
    this.overlay = byId("overlay");
    this.panes = Object.fromEntries(VIEWS.map((name) => [name, new Pane(name, () => desk.changed())]));
    this.layers = Object.fromEntries(
      VIEWS.map((name) => [name, svg("svg", { class: "layer", "data-view": name })]),
    );
    this.links = svg("g", { class: "links" });
    this.overlay.append(this.links, this.layers.cc, this.layers.mlo);
    this.pointer = null; // {x, y} on the stage
    this.active = "cc"; // the view that the pointer last touched: keys and sliders apply to it
    new ResizeObserver(() => this.measure()).observe(this.element);
    desk.addEventListener("change", () => this.draw());
  }

  open(pair, fetchRows) {
    const missing = VIEWS.filter((name) => !pair.views[name]);
    this.element.dataset.missing = missing.join(" ");
    this.active = missing.includes("cc") ? "mlo" : "cc";
    for (const name of VIEWS) {
      this.panes[name].open(pair.views[name], pair.laterality, (rows) => fetchRows(name, rows));
    }
    this.measure();
  }

  close() {
    this.element.dataset.missing = "";
    for (const pane of Object.values(this.panes)) pane.close("");
  }

  measure() {
    for (const name of VIEWS) {
      const pane = this.panes[name];
      pane.measure(this.element);
      const { width, height } = pane.viewport.pane;
      for (const [key, value] of Object.entries({ x: pane.left, y: pane.top, width, height })) {
        this.layers[name].setAttribute(key, value);
      }
    }
    this.desk.changed();
  }

  paneAt({ x, y }) {
    return (
      Object.values(this.panes).find(({ left, top, viewport: { pane }, isEmpty }) => {
        return !isEmpty && x >= left && y >= top && x < left + pane.width && y < top + pane.height;
      }) ?? null
    );
  }

  get activePane() {
    return this.panes[this.active];
  }

  fit() {
    for (const pane of Object.values(this.panes)) pane.viewport.fit();
    this.desk.changed();
  }

  showActualPixels() {
    const { viewport } = this.activePane;
    viewport.zoomBy(1 / window.devicePixelRatio / viewport.scale);
    this.desk.changed();
  }

  // Lets keyboard users start with a box in the centre of the visible part.
  drawInCentre() {
    const { name, viewport, isEmpty } = this.activePane;
    if (isEmpty) return;
    const { width, height } = viewport.pane;
    const corner = (share) => viewport.toImage({ x: share * width, y: share * height });
    const box = between(corner(0.45), corner(0.55), viewport.image);
    if (box) this.desk.draw(name, box);
  }

  goToOtherView() {
    this.active = otherView(this.active);
    this.desk.changed();
  }

  draw() {
    const { desk } = this;
    this.element.dataset.tool = desk.tool;
    for (const name of VIEWS) {
      this.panes[name].paint(this.grey);
      this.panes[name].element.classList.toggle("active", this.active === name);
      this.layers[name].replaceChildren(...drawMarks(desk, this.panes[name]));
    }
    this.links.replaceChildren(...drawLinks(desk, this.panes, this.pointer));
    this.overlay.setAttribute("aria-label", describe(desk));
  }
}

function describe(desk) {
  const lesions = lesionsOf(desk.labelling);
  const linked = lesions.filter(({ cc, mlo }) => cc && mlo).length;
  const views = VIEWS.map((name) =>
    desk.pair.views[name]
      ? `${name.toUpperCase()}: ${plural(desk.labelling[name].size, "box", "boxes")}`
      : `${name.toUpperCase()}: missing`,
  );
  const open = plural(desk.openFindings.length, "model finding");
  return `${views.join(". ")}. ${plural(linked, "link")}. ${open} to review.`;
}
