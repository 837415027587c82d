// Boxes [x_min, y_min, x_max, y_max] in pixels of the stored image, half-open; a size is {rows, columns}.

export const MIN_SIDE = 2; // pixels; a smaller box was drawn by accident

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

export function clipped([left, top, right, bottom], { rows, columns }) {
  return [clamp(left, 0, columns), clamp(top, 0, rows), clamp(right, 0, columns), clamp(bottom, 0, rows)];
}

export function isTiny([left, top, right, bottom]) {
  return right - left < MIN_SIDE || bottom - top < MIN_SIDE;
}

// The box between two points {x, y}, on whole pixels and within the image; null if it is tiny.
export function between(start, end, size) {
  const [left, right] = [start.x, end.x].sort((a, b) => a - b);
  const [top, bottom] = [start.y, end.y].sort((a, b) => a - b);
  const box = clipped([left, top, right, bottom].map(Math.round), size);
  return isTiny(box) ? null : box;
}

// Moves by whole pixels, within the image.
export function moved([left, top, right, bottom], dx, dy, { rows, columns }) {
  const x = clamp(Math.round(dx), -left, columns - right);
  const y = clamp(Math.round(dy), -top, rows - bottom);
  return [left + x, top + y, right + x, bottom + y];
}

// Moves the sides named in grip ("n", "se", …) to whole pixels, within the image and without turning over.
export function resized([left, top, right, bottom], grip, dx, dy, { rows, columns }) {
  return [
    grip.includes("w") ? clamp(Math.round(left + dx), 0, right - MIN_SIDE) : left,
    grip.includes("n") ? clamp(Math.round(top + dy), 0, bottom - MIN_SIDE) : top,
    grip.includes("e") ? clamp(Math.round(right + dx), left + MIN_SIDE, columns) : right,
    grip.includes("s") ? clamp(Math.round(bottom + dy), top + MIN_SIDE, rows) : bottom,
  ];
}

export function area([left, top, right, bottom]) {
  return Math.max(right - left, 0) * Math.max(bottom - top, 0);
}

export function overlap(one, two) {
  const shared = area([
    Math.max(one[0], two[0]),
    Math.max(one[1], two[1]),
    Math.min(one[2], two[2]),
    Math.min(one[3], two[3]),
  ]);
  return shared / (area(one) + area(two) - shared);
}
