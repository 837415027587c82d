// The controls above the stage: tools, undo, zoom, window and level, and which findings are shown.

const percentOf = (share) => `${Math.round(100 * share)} %`;

export function makeToolbar(desk, stage, grey) {
  const change = (act) => {
    act();
    desk.changed();
  };
  const onClick = (id, act) => byId(id).addEventListener("click", act);
  for (const tool of ["edit", "pan", "link"]) onClick(`tool-${tool}`, () => desk.take(tool));
  onClick("undo", () => desk.step("undo"));
  onClick("redo", () => desk.step("redo"));
  onClick("fit", () => stage.fit());
  onClick("actual", () => stage.showActualPixels());
  onClick("reset-grey", () => change(() => grey.reset()));
  onClick("accept-all", () => desk.accept(desk.openFindings));

  const onInput = (id, act) => byId(id).addEventListener("input", (event) => change(() => act(event.target)));
  onInput("grey-width", ({ valueAsNumber }) => grey.set(stage.active, { width: valueAsNumber / 100 }));
  onInput("grey-level", ({ valueAsNumber }) => grey.set(stage.active, { level: valueAsNumber / 100 }));
  onInput("invert", ({ checked }) => (grey.inverted = checked));
  onInput("together", ({ checked }) => grey.join(checked, stage.active));
  onInput("shows-model", ({ checked }) => (desk.showsModel = checked));
  onInput("min-score", ({ valueAsNumber }) => (desk.minScore = valueAsNumber));

  desk.addEventListener("change", () => {
    for (const tool of ["edit", "pan", "link"]) {
      byId(`tool-${tool}`).setAttribute("aria-pressed", String(desk.tool === tool));
    }
    byId("undo").disabled = !desk.undo.past.length;
    byId("redo").disabled = !desk.undo.future.length;
    const { level, width } = grey.views[stage.active];
    byId("grey-width").value = 100 * width;
    byId("grey-level").value = 100 * level;
    byId("grey-width-words").textContent = percentOf(width);
    byId("grey-level-words").textContent = percentOf(level);
    byId("grey-of").textContent = grey.together ? "" : ` of ${stage.active.toUpperCase()}`;
    byId("invert").checked = grey.inverted;
    byId("together").checked = grey.together;
    byId("shows-model").checked = desk.showsModel;
    byId("min-score").value = desk.minScore;
    byId("min-score-words").textContent = `≥ ${desk.minScore.toFixed(2)}`;
    byId("hint").textContent = hint(desk);
  });
}

function hint(desk) {
  if (desk.tool === "pan") return "Drag to move the image.";
  if (desk.tool === "link") {
    return desk.linkFrom
      ? "Click the box of the same lesion in the other view."
      : "Click a box, then its partner in the other view.";
  }
  if (desk.selected) return "Drag to move, handles to resize, L to link, Delete to delete.";
  const [finding] = desk.openFindings;
  const accepting = finding ? ` Click the tag M${finding.lesion_id} to accept the model's finding.` : "";
  return `Drag on a view to draw a box.${accepting}`;
}
