// Paints grey values: maps the visible part to pixels by a table, and lets the canvas scale it.

const SHARP_FROM = 8; // screen pixels per image pixel from which single pixels are shown unsmoothed

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.part = document.createElement("canvas"); // the visible part, unscaled
    this.shades = null; // its ImageData, reused from frame to frame
  }

  // level: {rows, columns, values}, the image at some resolution, or null; table: a pixel per grey value.
  paint(viewport, level, table) {
    const density = window.devicePixelRatio;
    const { canvas, context } = this;
    const [width, height] = [viewport.pane.width, viewport.pane.height].map((side) =>
      Math.round(side * density),
    );
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.fillStyle = "#000";
    context.fillRect(0, 0, width, height);
    if (!level) return;

    const [across, down] = [level.columns / viewport.image.columns, level.rows / viewport.image.rows];
    const end = viewport.toImage({ x: viewport.pane.width, y: viewport.pane.height });
    const left = Math.max(Math.floor(viewport.x * across) - 1, 0);
    const top = Math.max(Math.floor(viewport.y * down) - 1, 0);
    const columns = Math.min(Math.ceil(end.x * across) + 1, level.columns) - left;
    const rows = Math.min(Math.ceil(end.y * down) + 1, level.rows) - top;
    if (columns <= 0 || rows <= 0) return;

    this.lookUp(level, { left, top, columns, rows }, table);
    const scale = viewport.scale * density;
    const start = viewport.toScreen({ x: left / across, y: top / down });
    context.imageSmoothingEnabled = scale / down < SHARP_FROM;
    context.drawImage(
      this.part,
      ...[start.x * density, start.y * density, (columns / across) * scale, (rows / down) * scale],
    );
  }

  lookUp(level, { left, top, columns, rows }, table) {
    if (this.part.width !== columns || this.part.height !== rows) {
      Object.assign(this.part, { width: columns, height: rows });
      this.shades = new ImageData(columns, rows);
    }
    const pixels = new Uint32Array(this.shades.data.buffer);
    let to = 0;
    for (let row = top; row < top + rows; row += 1) {
      const first = row * level.columns + left;
      for (let from = first; from < first + columns; from += 1) pixels[to++] = table[level.values[from]];
    }
    this.part.getContext("2d", { willReadFrequently: true }).putImageData(this.shades, 0, 0);
  }
}
