// The history of a pair's label, and which state of it is saved.

import { isSame } from "./labelling.js";

export class Undo {
  constructor(labelling) {
    this.now = labelling;
    this.saved = labelling;
    this.past = [];
    this.future = [];
  }

  push(labelling) {
    if (isSame(labelling, this.now)) return;
    this.past.push(this.now);
    this.future = [];
    this.now = labelling;
  }

  undo() {
    if (!this.past.length) return;
    this.future.push(this.now);
    this.now = this.past.pop();
  }

  redo() {
    if (!this.future.length) return;
    this.past.push(this.now);
    this.now = this.future.pop();
  }

  get isDirty() {
    return !isSame(this.now, this.saved);
  }
}
