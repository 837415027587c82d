// Window and level: which grey values of 0..65535 are mapped between black and white.

const GREYS = 65536;
const WHOLE = { level: 0.5, width: 1 }; // both as a share of all greys
const NARROWEST = 0.01;
const WIDEST = 2;

export class GreyWindow {
  constructor() {
    this.together = true;
    this.tables = new Map();
    this.reset();
  }

  // Changes {level, width} of a view, or of both views if they are joined.
  set(view, change) {
    for (const name of this.together ? ["cc", "mlo"] : [view]) {
      const next = { ...this.views[name], ...change };
      next.level = Math.min(Math.max(next.level, 0), 1);
      next.width = Math.min(Math.max(next.width, NARROWEST), WIDEST);
      this.views[name] = next;
    }
  }

  reset() {
    this.views = { cc: { ...WHOLE }, mlo: { ...WHOLE } };
    this.inverted = false;
  }

  join(together, view) {
    this.together = together;
    if (together) this.set(view, this.views[view]);
  }

  // Grey value → pixel as ImageData stores it: alpha, blue, green, red from the highest byte.
  tableOf(view) {
    const { level, width } = this.views[view];
    const key = `${level} ${width} ${this.inverted}`;
    const kept = this.tables.get(view);
    if (kept?.key === key) return kept;
    const values = new Uint32Array(GREYS);
    for (let grey = 0; grey < GREYS; grey += 1) {
      const share = Math.min(Math.max((grey / (GREYS - 1) - level) / width + 0.5, 0), 1);
      const shade = Math.round(255 * (this.inverted ? 1 - share : share));
      values[grey] = 0xff000000 | (shade << 16) | (shade << 8) | shade;
    }
    const table = { key, values };
    this.tables.set(view, table);
    return table;
  }
}
