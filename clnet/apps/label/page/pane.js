// The pane of one view: its image, the visible part of it, or a message if there is no image.

import { Painter } from "./painter.js";
import { Pixels } from "./pixels.js";
import { Viewport } from "./viewport.js";

export class Pane {
  // changed is called when the pane must be redrawn.
  constructor(name, changed) {
    this.name = name;
    this.changed = changed;
    this.element = byId(`view-${name}`);
    this.painter = new Painter(this.element.querySelector("canvas"));
    this.viewport = new Viewport();
    this.pixels = null;
    this.painted = "";
  }

  get isEmpty() {
    return this.pixels === null;
  }

  close(words) {
    this.pixels = null;
    this.painted = "";
    this.element.classList.remove("missing");
    this.element.querySelector(".name").textContent = "";
    this.element.querySelector(".scale").textContent = "";
    this.say(words);
    this.changed();
  }

  // view: {rows, columns}, or null if the view is missing; fetchRows fetches its pixels.
  open(view, laterality, fetchRows) {
    this.close(view ? "Loading the image …" : `This pair has no ${this.name.toUpperCase()} view.`);
    this.element.classList.toggle("missing", view === null);
    this.element.querySelector(".name").textContent = `${laterality} ${this.name.toUpperCase()}`;
    if (!view) return;
    this.viewport.image = { rows: view.rows, columns: view.columns };
    this.viewport.fit();
    this.pixels = new Pixels(
      view.rows,
      fetchRows,
      () => {
        this.say("");
        this.changed();
      },
      (error) => this.say(`The image could not be loaded. ${error.message}`),
    );
    this.changed();
  }

  say(words) {
    const place = this.element.querySelector(".instead");
    place.textContent = words;
    place.hidden = !words;
  }

  // Updates the pane's place on the stage after a change of the window.
  measure(stage) {
    const [pane, whole] = [this.element.getBoundingClientRect(), stage.getBoundingClientRect()];
    this.left = pane.left - whole.left;
    this.top = pane.top - whole.top;
    this.viewport.resize({ width: pane.width, height: pane.height });
  }

  // A point of the stage in this pane's image.
  toImage({ x, y }) {
    return this.viewport.toImage({ x: x - this.left, y: y - this.top });
  }

  paint(grey) {
    if (this.isEmpty) {
      this.painter.paint(this.viewport, null, null);
      return;
    }
    const { scale, x, y, pane, image } = this.viewport;
    const level = this.pixels.forRows(image.rows * scale * window.devicePixelRatio);
    const table = grey.tableOf(this.name);
    const wanted = [
      level?.rows,
      table.key,
      scale,
      x,
      y,
      pane.width,
      pane.height,
      window.devicePixelRatio,
    ].join(" ");
    if (wanted === this.painted) return;
    this.painted = wanted;
    this.painter.paint(this.viewport, level, table.values);
    this.element.dataset.rows = level?.rows ?? 0;
    this.element.querySelector(".scale").textContent =
      `${Math.round(100 * scale)} % · ${image.columns} × ${image.rows}`;
  }
}
