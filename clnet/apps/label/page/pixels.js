// The greys of one view in as many pixels as are shown: few at first, all of them at a close look.

const STEPS = [1024, 2048]; // rows to ask for; where more are shown, the whole image

export class Pixels {
  // fetchRows(rows) promises {rows, columns, values}; arrived() and failed(error) say how that went.
  constructor(rows, fetchRows, arrived, failed) {
    this.rows = rows;
    this.fetchRows = fetchRows;
    this.arrived = arrived;
    this.failed = failed;
    this.levels = new Map();
    this.asked = new Set();
  }

  // The best greys at hand for so many rows of the screen, or null; better ones are on their way.
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
