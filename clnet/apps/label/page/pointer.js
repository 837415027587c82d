// Pointer actions on the stage: draw, move, resize, link, pan, zoom, window and level.

import { between, moved, resized } from "./boxes.js";
import { freeLesion, withBox } from "./labelling.js";

const CLICK = 4; // screen pixels that the pointer may move during a click
const ZOOM = 0.0015; // per unit of the wheel
const LINE = 33; // units of the wheel per line, for browsers that count lines
const GREY = 0.0025; // share of all grey values per screen pixel

export class Pointer {
  constructor(stage, desk, grey) {
    Object.assign(this, { stage, desk, grey });
    this.drag = null; // {move(dx, dy, point), end(hasMoved)}
    this.spaceHeld = false;
    const on = (name, act) => stage.element.addEventListener(name, act, { passive: false });
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", () => this.cancel());
    on("pointerleave", () => this.point(null));
    on("wheel", (event) => this.wheel(event));
    on("contextmenu", (event) => event.preventDefault());
  }

  place(event) {
    const { left, top } = this.stage.element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  holdSpace(isHeld) {
    this.spaceHeld = isHeld;
    this.stage.element.classList.toggle("panning", isHeld);
  }

  point(point) {
    this.stage.pointer = point;
    if (this.desk.linkFrom) this.desk.changed();
  }

  down(event) {
    if (this.drag) return;
    const point = this.place(event);
    const pane = this.stage.paneAt(point);
    if (!pane) return;
    event.preventDefault();
    this.stage.element.focus({ preventScroll: true });
    this.stage.element.setPointerCapture(event.pointerId);
    this.stage.active = pane.name;
    this.start = point;
    this.drag = this.dragFor(event, pane, point);
    this.desk.changed();
  }

  dragFor(event, pane, point) {
    if (event.button === 2) return this.windowing(pane);
    if (event.button === 1 || this.spaceHeld || this.desk.tool === "pan") return this.panning(pane);
    const { kind, view, lesion, finding, grip } = event.target.closest("[data-kind]")?.dataset ?? {};
    if (kind === "accept") return this.clicking(() => this.desk.acceptNumber(finding));
    if (this.desk.tool === "link") {
      return this.clicking(() =>
        kind === "box" ? this.desk.pickForLink(view, lesion) : this.desk.take("edit"),
      );
    }
    if (event.shiftKey) return this.drawing(pane, point);
    if (kind === "handle") return this.changing(pane, this.desk.selected.lesion, grip);
    if (kind === "box") {
      this.desk.select(view, lesion);
      return this.changing(pane, lesion, null);
    }
    if (kind === "link-grip") return this.clicking(() => this.desk.select(pane.name, lesion));
    return this.drawing(pane, point);
  }

  clicking(act) {
    return { move() {}, end: (hasMoved) => hasMoved || act() };
  }

  panning(pane) {
    let before = { x: 0, y: 0 };
    return {
      move: (dx, dy) => {
        pane.viewport.panBy(dx - before.x, dy - before.y);
        before = { x: dx, y: dy };
      },
      end() {},
    };
  }

  windowing(pane) {
    const start = { ...this.grey.views[pane.name] };
    return {
      // Right widens the window; up lowers the level, which brightens the image.
      move: (dx, dy) =>
        this.grey.set(pane.name, { width: start.width + GREY * dx, level: start.level + GREY * dy }),
      end() {},
    };
  }

  changing(pane, lesion, grip) {
    const before = this.desk.undo.now;
    const box = before[pane.name].get(lesion);
    const { scale, image } = pane.viewport;
    return {
      move: (dx, dy) => {
        const by = [dx / scale, dy / scale, image];
        const next = grip ? resized(box, grip, ...by) : moved(box, ...by);
        this.desk.show(withBox(before, pane.name, lesion, next));
      },
      end: (hasMoved) => hasMoved && this.desk.edit(this.desk.preview),
    };
  }

  drawing(pane, point) {
    const { desk } = this;
    const start = pane.toImage(point);
    const lesion = freeLesion(desk.undo.now);
    let box = null;
    return {
      move: (dx, dy, now) => {
        box = between(start, pane.toImage(now), pane.viewport.image);
        desk.show(box && withBox(desk.undo.now, pane.name, lesion, box));
      },
      end: (hasMoved) => {
        desk.preview = null;
        if (hasMoved && box) desk.draw(pane.name, box);
        else desk.select(null);
      },
    };
  }

  move(event) {
    const point = this.place(event);
    this.point(point);
    if (!this.drag) return;
    const [dx, dy] = [point.x - this.start.x, point.y - this.start.y];
    this.hasMoved ||= Math.hypot(dx, dy) >= CLICK;
    if (!this.hasMoved) return;
    this.drag.move(dx, dy, point);
    this.desk.changed();
  }

  up() {
    if (!this.drag) return;
    const { drag, hasMoved } = this;
    Object.assign(this, { drag: null, hasMoved: false });
    drag.end(hasMoved);
    this.desk.changed();
  }

  // Reverts the current drag.
  cancel() {
    if (!this.drag) return false;
    Object.assign(this, { drag: null, hasMoved: false });
    this.desk.show(null);
    return true;
  }

  wheel(event) {
    const point = this.place(event);
    const pane = this.stage.paneAt(point);
    if (!pane) return;
    event.preventDefault();
    if (this.drag) return;
    this.stage.active = pane.name;
    const units = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1);
    pane.viewport.zoomBy(Math.exp(-ZOOM * units), { x: point.x - pane.left, y: point.y - pane.top });
    this.desk.changed();
  }
}
