// The part of an image that a pane shows: screen = (image - origin) * scale, in pixels of the pane.

const MARGIN = 8; // pixels left free around an image that fits
const MAX_SCALE = 32; // screen pixels per image pixel

export class Viewport {
  constructor() {
    this.pane = { width: 1, height: 1 };
    this.image = { rows: 1, columns: 1 };
    this.isFitted = true;
    this.fit();
  }

  get fittingScale() {
    const { width, height } = this.pane;
    return Math.min(
      Math.max(width - 2 * MARGIN, 1) / this.image.columns,
      Math.max(height - 2 * MARGIN, 1) / this.image.rows,
    );
  }

  fit() {
    this.isFitted = true;
    this.scale = this.fittingScale;
    this.x = (this.image.columns - this.pane.width / this.scale) / 2;
    this.y = (this.image.rows - this.pane.height / this.scale) / 2;
  }

  // Keeps the centre in the centre when the pane changes its size.
  resize(pane) {
    const middle = this.toImage({ x: this.pane.width / 2, y: this.pane.height / 2 });
    this.pane = pane;
    if (this.isFitted) this.fit();
    else this.zoomTo(this.scale, { x: pane.width / 2, y: pane.height / 2 }, middle);
  }

  toImage({ x, y }) {
    return { x: this.x + x / this.scale, y: this.y + y / this.scale };
  }

  toScreen({ x, y }) {
    return { x: (x - this.x) * this.scale, y: (y - this.y) * this.scale };
  }

  boxToScreen([left, top, right, bottom]) {
    const [start, end] = [this.toScreen({ x: left, y: top }), this.toScreen({ x: right, y: bottom })];
    return [start.x, start.y, end.x, end.y];
  }

  // Sets the scale such that the anchor in the image is at the point of the pane.
  zoomTo(scale, point, anchor = this.toImage(point)) {
    this.isFitted = false;
    this.scale = Math.min(Math.max(scale, this.fittingScale / 2), MAX_SCALE);
    this.x = anchor.x - point.x / this.scale;
    this.y = anchor.y - point.y / this.scale;
    this.keepInSight();
  }

  zoomBy(factor, point = { x: this.pane.width / 2, y: this.pane.height / 2 }) {
    this.zoomTo(this.scale * factor, point);
  }

  panBy(dx, dy) {
    this.isFitted = false;
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.keepInSight();
  }

  // Keeps the centre of the pane within the image.
  keepInSight() {
    const keep = (origin, shown, whole) => Math.min(Math.max(origin, -shown / 2), whole - shown / 2);
    this.x = keep(this.x, this.pane.width / this.scale, this.image.columns);
    this.y = keep(this.y, this.pane.height / this.scale, this.image.rows);
  }
}
