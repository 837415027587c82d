// The open pair: its label, the model's findings, the selection and the current tool.

import { moved, resized } from "./boxes.js";
import * as labels from "./labelling.js";
import { Undo } from "./undo.js";

const NO_PAIR = { pair_id: null, laterality: "", views: { cc: null, mlo: null }, label: null };
const DEFAULT_MIN_SCORE = 0.3; // until the model says its own

export class Desk extends EventTarget {
  constructor() {
    super();
    this.showsModel = true;
    this.chosenMinScore = null; // by the slider
    this.tool = "edit"; // or "pan", "link"
    this.put(NO_PAIR);
  }

  clearSelection() {
    this.selected = null; // {view, lesion}: a box
    this.linkFrom = null; // {view, lesion}: the first of two boxes to link
    this.preview = null; // the label as the current drag would leave it
  }

  // Tells everything that draws about a change, once per frame.
  changed() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.dispatchEvent(new Event("change"));
    });
  }

  put(pair) {
    this.pair = pair; // as the server returns it
    this.undo = new Undo(labels.fromJson(pair.label, pair.views));
    this.findings = null; // {model, notice, min_score, lesions}; null while the model is running, or if it failed
    this.findingsError = null;
    this.tool = this.tool === "link" ? "edit" : this.tool;
    this.clearSelection();
    this.changed();
  }

  clear() {
    this.put(NO_PAIR);
  }

  // Of the findings shown; by default as in the reports of `clnet predict`.
  get minScore() {
    return this.chosenMinScore ?? this.findings?.min_score ?? DEFAULT_MIN_SCORE;
  }

  set minScore(score) {
    this.chosenMinScore = score;
  }

  get labelling() {
    return this.preview ?? this.undo.now;
  }

  get isDirty() {
    return this.undo.isDirty;
  }

  get shownFindings() {
    if (!this.showsModel) return [];
    return (this.findings?.lesions ?? []).filter((finding) => finding.score >= this.minScore);
  }

  // The shown findings that the label does not cover.
  get openFindings() {
    return this.shownFindings.filter((finding) => !labels.isCovered(this.labelling, finding));
  }

  take(tool) {
    this.tool = tool;
    this.linkFrom = tool === "link" ? this.selected : null;
    this.changed();
  }

  select(view, lesion) {
    this.selected = view ? { view, lesion } : null;
    this.changed();
  }

  selectNext(step) {
    const boxes = labels.VIEWS.flatMap((view) =>
      [...(this.labelling[view]?.keys() ?? [])].map((lesion) => ({ view, lesion })),
    );
    if (!boxes.length) return;
    const at = boxes.findIndex((box) => this.isSelected(box.view, box.lesion));
    const next = at < 0 ? (step > 0 ? 0 : boxes.length - 1) : (at + step + boxes.length) % boxes.length;
    this.select(boxes[next].view, boxes[next].lesion);
  }

  isSelected(view, lesion) {
    return this.selected?.view === view && this.selected.lesion === lesion;
  }

  // The next state of the label, which undo can revert.
  edit(labelling, selected = this.selected) {
    this.preview = null;
    this.undo.push(labelling);
    this.keepSelected(selected);
  }

  step(direction) {
    this.preview = null;
    this.undo[direction]();
    this.keepSelected(this.selected);
  }

  keepSelected(selected) {
    const exists = selected && this.labelling[selected.view]?.has(selected.lesion);
    this.selected = exists ? selected : null;
    this.linkFrom = null;
    if (this.tool === "link") this.tool = "edit";
    this.changed();
  }

  show(labelling) {
    this.preview = labelling;
    this.changed();
  }

  draw(view, box) {
    const lesion = labels.freeLesion(this.undo.now);
    this.edit(labels.withBox(this.undo.now, view, lesion, box), { view, lesion });
  }

  removeSelected() {
    if (!this.selected) return;
    this.edit(labels.withoutBox(this.undo.now, this.selected.view, this.selected.lesion));
  }

  removeLesion(lesion) {
    this.edit(labels.withoutLesion(this.undo.now, lesion));
  }

  // Moves the selected box by pixels, or its lower right corner.
  nudge(dx, dy, resizing) {
    if (!this.selected) return;
    const { view, lesion } = this.selected;
    const box = this.undo.now[view].get(lesion);
    const size = this.pair.views[view];
    const next = resizing ? resized(box, "se", dx, dy, size) : moved(box, dx, dy, size);
    this.edit(labels.withBox(this.undo.now, view, lesion, next));
  }

  // A box to link: the first one, or the second one in the other view.
  pickForLink(view, lesion) {
    if (this.linkFrom === null || this.linkFrom.view === view) {
      this.linkFrom = { view, lesion };
      this.selected = this.linkFrom;
      this.changed();
      return;
    }
    const ends = { [view]: lesion, [this.linkFrom.view]: this.linkFrom.lesion };
    this.edit(labels.withLink(this.undo.now, ends.cc, ends.mlo), { view, lesion: ends.cc });
  }

  linkSelected() {
    if (this.tool === "link" && this.selected) this.pickForLink(this.selected.view, this.selected.lesion);
  }

  unlink(lesion = this.selected?.lesion) {
    if (lesion === undefined || !labels.isLinked(this.undo.now, lesion)) return;
    this.edit(labels.withoutLink(this.undo.now, lesion), { view: "cc", lesion });
  }

  accept(findings) {
    const next = findings.reduce(
      (labelling, finding) => labels.withFinding(labelling, finding, this.pair.views),
      this.undo.now,
    );
    this.edit(next);
  }

  acceptNumber(id) {
    this.accept(this.openFindings.filter((finding) => finding.lesion_id === id));
  }

  markSaved(labelling) {
    this.undo.saved = labelling;
    this.pair = { ...this.pair, label: labels.toJson(labelling) };
    this.changed();
  }

  markRemoved() {
    this.pair = { ...this.pair, label: null };
    this.undo = new Undo(labels.fromJson(null, this.pair.views));
    this.clearSelection();
    this.changed();
  }
}
