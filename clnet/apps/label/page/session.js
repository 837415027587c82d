// Opening, saving and leaving pairs.

import { toJson } from "./labelling.js";
import { say, sayError } from "./messages.js";
import { askAboutUnsaved } from "./unsaved.js";

const SIDES = { L: "left breast", R: "right breast" };

export class Session {
  constructor(server, desk, stage, list) {
    Object.assign(this, { server, desk, stage, list });
    this.leaving = new AbortController(); // aborts the requests of a pair when it is left
  }

  // Shows errors instead of throwing them.
  async attempt(act) {
    try {
      return await act();
    } catch (error) {
      sayError(error);
      return undefined;
    }
  }

  start() {
    return this.attempt(async () => {
      this.list.fill(await this.server.pairs());
      await this.openAddressed();
    });
  }

  // Opens the pair named in the address, or the first one.
  openAddressed() {
    return this.attempt(async () => {
      const wanted = decodeURIComponent(location.hash.slice(1));
      const pairId = wanted || this.list.neighbour(0);
      if (pairId) await this.open(pairId);
    });
  }

  open(pairId) {
    return this.attempt(async () => {
      if (!(await this.mayLeave())) return this.nameInAddress(this.desk.pair.pair_id);
      this.leaving.abort();
      this.leaving = new AbortController();
      const { signal } = this.leaving;
      this.desk.clear();
      this.stage.close();
      byId("pair-side").textContent = "";
      this.list.markOpen(pairId);
      byId("pair-title").textContent = pairId;
      document.title = `${pairId} · clnet label`;
      this.nameInAddress(pairId);
      say("");
      const pair = await this.server.pair(pairId, signal);
      byId("pair-side").textContent = SIDES[pair.laterality] ?? "";
      this.desk.put(pair);
      this.stage.open(pair, (view, rows) => this.server.pixels(pairId, view, rows, signal));
      await this.askModel(pairId, signal);
    });
  }

  nameInAddress(pairId) {
    history.replaceState(null, "", `#${encodeURIComponent(pairId)}`);
  }

  // The model's findings arrive after the pair; nothing waits for them.
  async askModel(pairId, signal) {
    try {
      const findings = await this.server.findings(pairId, signal);
      if (!signal.aborted) this.desk.findings = findings;
    } catch (error) {
      if (signal.aborted) return;
      this.desk.findingsError = error.message;
    }
    this.desk.changed();
  }

  async mayLeave() {
    if (!this.desk.isDirty) return true;
    const answer = await askAboutUnsaved(this.desk.pair.pair_id);
    if (answer === "save") return this.save();
    return answer === "discard";
  }

  step(by) {
    const next = this.list.neighbour(by);
    if (next) return this.open(next);
    return say(by > 0 ? "This is the last pair in the list." : "This is the first pair in the list.");
  }

  // Resolves to whether the label was saved.
  async save() {
    const { pair_id: pairId } = this.desk.pair;
    if (pairId === null) return false;
    const labelling = this.desk.undo.now;
    return Boolean(
      await this.attempt(async () => {
        await this.server.save(pairId, toJson(labelling));
        if (this.desk.pair.pair_id === pairId) this.desk.markSaved(labelling);
        this.list.markLabelled(pairId, true);
        say(`Saved ${pairId}.`);
        return true;
      }),
    );
  }

  removeLabel() {
    const { pair_id: pairId } = this.desk.pair;
    return this.attempt(async () => {
      await this.server.removeLabel(pairId);
      if (this.desk.pair.pair_id === pairId) this.desk.markRemoved();
      this.list.markLabelled(pairId, false);
      say(`Removed the label of ${pairId}.`);
    });
  }

  nextSample(strategy) {
    return this.attempt(async () => {
      const { id } = await this.server.nextSample(strategy);
      if (id === undefined) return say("The server has no more pairs to suggest.");
      const pairId = this.list.pairWith(id);
      if (pairId === null) return say(`The server suggests ${id}, which is not part of a pair.`, "error");
      return this.open(pairId);
    });
  }
}
