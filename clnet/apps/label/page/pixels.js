// The grey values of one view at the resolution shown: coarse at first, full when zoomed in.

const STEPS = [1024, 2048]; // rows to request; above these, the whole image

export class Pixels {
  // fetchRows(rows) resolves to {rows, columns, values}; then arrived() or failed(error) is called.
  constructor(rows, fetchRows, arrived, failed) {
    this.rows = rows;
    this.fetchRows = fetchRows;
    this.arrived = arrived;
    this.failed = failed;
    this.levels = new Map();
    this.asked = new Set();
  }

  // The best values available for that many screen rows, or null; better ones are requested.
  forRows(shown) {
    const wanted = STEPS.find((rows) => rows >= shown && rows < this.rows) ?? this.rows;
    if (!this.asked.has(wanted)) this.ask(wanted);
    if (this.levels.has(wanted)) return this.levels.get(wanted);
    return [...this.levels.values()].sort((a, b) => b.rows - a.rows)[0] ?? null;
  }

  async ask(rows) {
    this.asked.add(rows);
    try {
      this.levels.set(rows, await this.fetchRows(rows));
      this.arrived();
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
    }
  }
}
