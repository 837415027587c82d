// The panel beside the stage: the lesions of the label, the model's findings, and warnings.

import { VIEWS, isCovered, lesionsOf } from "./labelling.js";
import { colourOf } from "./marks.js";

// Replaces the content and keeps the focus: buttons are identified by data-focus.
function refill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  element.replaceChildren(...children.flat().filter((child) => child !== null));
  if (focused) element.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

function button(words, label, focus, act) {
  return html(
    "button",
    { type: "button", "aria-label": label, title: label, "data-focus": focus, onclick: act },
    words,
  );
}

function lesionEntry(desk, { lesion, cc, mlo }) {
  const where = cc && mlo ? "CC and MLO" : `${cc ? "CC" : "MLO"} only`;
  const view = desk.selected?.lesion === lesion ? desk.selected.view : cc ? "cc" : "mlo";
  return html(
    "li",
    { class: colourOf(lesion), "data-lesion": lesion },
    html(
      "button",
      {
        type: "button",
        class: "choose",
        "aria-pressed": String(desk.selected?.lesion === lesion),
        "data-focus": `choose ${lesion}`,
        onclick: () => desk.select(view, lesion),
      },
      html("b", { class: "swatch" }, lesion),
      html("span", {}, where),
    ),
    cc && mlo
      ? button("Unlink", `Unlink lesion ${lesion}`, `unlink ${lesion}`, () => desk.unlink(lesion))
      : null,
    button("✕", `Delete lesion ${lesion}`, `delete ${lesion}`, () => desk.removeLesion(lesion)),
  );
}

function findingEntry(desk, finding) {
  const id = finding.lesion_id;
  const views = VIEWS.filter((name) => finding[name]);
  const scores = views.map((name) => `${name.toUpperCase()} ${scoreText(finding[name].score)}`).join(" · ");
  const score = finding.link_score === null ? "" : ` ${scoreText(finding.link_score)}`;
  const link = views.length === 2 ? `link${score}` : "one view only";
  const isDone = isCovered(desk.labelling, finding);
  return html(
    "li",
    { "data-finding": id, class: isDone ? "covered" : "" },
    html("b", { class: "swatch model" }, `M${id}`),
    html("span", {}, scores, html("small", {}, link)),
    isDone
      ? html("span", { class: "in-label" }, "✓ in label")
      : button("Accept", `Accept finding M${id} of the model`, `accept ${id}`, () => desk.accept([finding])),
  );
}

function modelWords(desk) {
  if (desk.pair.pair_id === null) return "";
  if (desk.findingsError) return `The model failed on this pair. ${desk.findingsError}`;
  if (!desk.findings) return "The model is running …";
  if (!desk.findings.lesions.length) return "The model found no lesions.";
  const weaker = desk.findings.lesions.filter((finding) => finding.score < desk.minScore).length;
  return desk.showsModel && weaker
    ? `${plural(weaker, "weaker finding")} below ${scoreText(desk.minScore)}`
    : "";
}

export function drawPanel(desk) {
  const lesions = lesionsOf(desk.labelling);
  const isEmpty = lesions.length === 0 && desk.pair.pair_id !== null;
  const savedEmpty = desk.pair.label !== null && !desk.isDirty;
  byId("lesions-count").textContent = lesions.length ? plural(lesions.length, "lesion") : "";
  byId("no-lesions").hidden = !isEmpty || savedEmpty;
  byId("saved-empty").hidden = !isEmpty || !savedEmpty;
  refill(
    byId("lesions"),
    lesions.map((lesion) => lesionEntry(desk, lesion)),
  );

  refill(
    byId("findings"),
    desk.shownFindings.map((finding) => findingEntry(desk, finding)),
  );
  byId("model-name").textContent = desk.findings?.model ?? "";
  byId("model-words").textContent = modelWords(desk);
  byId("accept-all").disabled = desk.openFindings.length === 0;
  byId("notice").textContent = desk.findings?.notice ?? "";

  const warnings = VIEWS.flatMap((name) =>
    (desk.pair.views[name]?.warnings ?? []).map((words) =>
      html("li", {}, html("b", {}, name.toUpperCase()), ` ${words}`),
    ),
  );
  byId("warnings-part").hidden = warnings.length === 0;
  byId("warnings").replaceChildren(...warnings);
  byId("remove-label").hidden = desk.pair.label === null;
}
