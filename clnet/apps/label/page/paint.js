// Greys to a canvas: only what the pane shows is looked up in the table, then scaled by the canvas.

const scratch = document.createElement("canvas");
let room = null; // ImageData of the scratch canvas, kept from frame to frame

function roomFor(width, height) {
  if (!room || room.width < width || room.height < height) {
    scratch.width = Math.max(width, room?.width ?? 0);
    scratch.height = Math.max(height, room?.height ?? 0);
    room = new ImageData(scratch.width, scratch.height);
  }
  return new Uint32Array(room.data.buffer);
}

// level: {rows, columns, values}, the image in fewer or all of its pixels.
export function paint(canvas, viewport, level, table) {
  const density = window.devicePixelRatio;
  const [width, height] = [viewport.pane.width, viewport.pane.height].map((side) => Math.round(side * density));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { alpha: false });
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

  const shades = roomFor(columns, rows);
  for (let row = 0; row < rows; row += 1) {
    let from = (top + row) * level.columns + left;
    let to = row * room.width;
    for (const stop = to + columns; to < stop; ) shades[to++] = table[level.values[from++]];
  }
  scratch.getContext("2d").putImageData(room, 0, 0, 0, 0, columns, rows);
  // From eight screen pixels for one of the image on, the pixels themselves are what is looked at.
  context.imageSmoothingEnabled = (viewport.scale * density) / down < 8;
  const start = viewport.toScreen({ x: left / across, y: top / down });
  const scale = viewport.scale * density;
  context.drawImage(
    scratch,
    ...[0, 0, columns, rows],
    ...[start.x * density, start.y * density, (columns / across) * scale, (rows / down) * scale],
  );
}
