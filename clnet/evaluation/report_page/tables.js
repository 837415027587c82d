"use strict";
// The numbers: headline, recall, links, errors, subgroups.

// A share with its interval below it; a dash for 0 of 0.
function share(entry) {
  if (entry.value === null) return html("td", { class: "number" }, "–");
  const interval =
    entry.low === null ? null : html("small", {}, `${percent(entry.low)}–${percent(entry.high)}`);
  return html("td", { class: "number" }, html("b", {}, percent(entry.value)), interval);
}

const count = (value) => html("td", { class: "number" }, number(value));
const columnHead = (words, className = "number") => html("th", { scope: "col", class: className }, words);
const rowHead = (...words) => html("th", { scope: "row" }, ...words);

function table(caption, head, ...bodies) {
  return html("table", {}, html("caption", {}, caption), html("thead", {}, html("tr", {}, head)), bodies);
}

function groupBody(title, columns, rows) {
  const head = html("tr", { class: "group" }, html("th", { scope: "rowgroup", colspan: columns }, title));
  return html("tbody", {}, head, rows);
}

function headline(report) {
  const rate = report.settings.operating_rate;
  const tiles = Object.entries(report.detection).map(([key, at]) => {
    const entry = at.recall[rateName(rate)] ?? at.mean_recall;
    const name = at.recall[rateName(rate)] ? `R@${rateName(rate)}` : "Mean recall";
    return tile(`${name}, ${report.overlaps[key]}`, entry, "of lesion boxes");
  });
  if (report.links) {
    const [[key, rows]] = Object.entries(report.links);
    tiles.push(
      tile(`Links, F1, ${report.overlaps[key]}`, rows.all.f1, `of ${plural(rows.all.counts.lesions, "lesion")}`),
    );
  }
  const errors = Object.values(report.errors.counts).reduce((sum, each) => sum + each, 0);
  tiles.push(
    html(
      "div",
      { class: "tile" },
      html("h3", {}, `Errors at ${rate} FP/image`),
      html("p", { class: "figure" }, number(errors)),
      html("p", {}, `in ${plural(report.counts.pairs, "pair")}`),
    ),
  );
  byId("headline").append(...tiles);
}

function tile(name, entry, words) {
  const interval = entry.low === null ? "" : `${percent(entry.low)}–${percent(entry.high)}`;
  const figure = entry.value === null ? "–" : [percent(entry.value), html("span", {}, "%")];
  return html(
    "div",
    { class: "tile" },
    html("h3", {}, name),
    html("p", { class: "figure" }, figure),
    html("p", {}, html("b", {}, interval), words),
  );
}

function recallTable(report) {
  const rates = report.rates.map(rateName);
  const bodies = Object.entries(report.detection).map(([key, at]) => {
    const rows = Object.entries(report.units).map(([unit, name]) => {
      const recall = at[unit === "image" ? "recall" : `recall_per_${unit}`];
      return html(
        "tr",
        { class: unit === "image" ? "main" : null },
        rowHead(name),
        rates.map((rate) => share(recall[rate])),
      );
    });
    return groupBody(report.overlaps[key], rates.length + 1, rows);
  });
  const head = [columnHead("Unit", ""), ...rates.map((rate) => columnHead(`R@${rate}`))];
  byId("recall-table").append(
    table(
      `R@t: recall in % at t false positives per image, by ${report.protocol}; below it the 95% interval`,
      head,
      ...bodies,
    ),
  );
}

function linksTable(report) {
  if (!report.links) {
    byId("links-table").append(html("p", { class: "note" }, "The findings have no links."));
    return;
  }
  const measures = { precision: "Precision", recall: "Recall", f1: "F1", accuracy: "Accuracy if both found" };
  const names = {
    all: "all breasts",
    several_lesions: "breasts with several lesions",
    single_pair: "breasts with one lesion, a box in each view",
    only_in_one_view: "“only in this view”; accuracy if found",
  };
  const bodies = Object.entries(report.links).map(([key, rows]) =>
    groupBody(
      report.overlaps[key],
      8,
      Object.entries(names).filter(([row]) => row in rows).map(([row, name]) =>
        html(
          "tr",
          { class: row === "all" ? "main" : null },
          rowHead(name),
          count(rows[row].counts.lesions),
          count(rows[row].counts.right),
          count(rows[row].counts.wrong),
          Object.keys(measures).map((measure) => share(rows[row][measure])),
        ),
      ),
    ),
  );
  const head = [
    columnHead("Where", ""),
    ...["Lesions", "Right", "Wrong", ...Object.values(measures)].map((words) => columnHead(words)),
  ];
  byId("links-table").append(
    table(
      `Links of score ≥ ${report.settings.link_score}, by ${report.protocol}, in breasts with both views; % with 95% interval`,
      head,
      ...bodies,
    ),
  );
}

// Each type of error is a button that shows examples of it.
function errorsTable(report, choose) {
  const most = Math.max(1, ...Object.values(report.errors.counts));
  const rows = Object.entries(report.errors.counts).map(([type, errors]) =>
    html(
      "tr",
      {},
      rowHead(
        html(
          "button",
          {
            type: "button",
            class: "plain",
            "data-type": type,
            "aria-pressed": "false",
            disabled: errors === 0,
            onclick: () => choose(type),
          },
          spoken(type),
        ),
        html("small", {}, report.error_types[type]),
      ),
      html("td", { class: "number" }, html("b", {}, number(errors))),
      html("td", { class: "bar" }, errors ? html("div", { style: `width:${(100 * errors) / most}%` }) : null),
    ),
  );
  byId("errors-about").textContent =
    `At ${report.settings.operating_rate} false positives per image` +
    (report.errors.score_above === null ? "" : ` (scores above ${scoreText(report.errors.score_above)})`) +
    `, ${report.overlaps[`iou=${report.errors.iou}`]}. Choose a type to see examples.`;
  byId("errors-table").append(
    table(
      `How often each type of error occurs, by ${report.protocol}`,
      [columnHead("Type", ""), columnHead("n"), columnHead("", "bar")],
      html("tbody", {}, rows),
    ),
  );
}

function subgroupsTable(report) {
  const keys = Object.keys(report.subgroups);
  const rates = report.rates.filter((rate) => rate >= 0.25 && rate <= 2).map(rateName);
  const any = Object.keys(report.subgroups[keys[0]]).length > 0;
  byId("subgroups-about").textContent = any
    ? "Recall of lesion boxes in %, at the score thresholds of the whole set. Values that fewer than three patients share are not listed."
    : "The datalist has no attribute that divides these pairs into groups of at least three patients.";
  if (!any) return;

  function show(key) {
    const bodies = Object.entries(report.subgroups[key]).map(([name, labels]) =>
      groupBody(
        spoken(name),
        rates.length + 2,
        Object.entries(labels).map(([label, group]) =>
          html(
            "tr",
            {},
            rowHead(label),
            count(group.boxes),
            rates.map((rate) => share(group.recall[rate])),
          ),
        ),
      ),
    );
    const head = [
      columnHead("Subgroup", ""),
      columnHead("Boxes"),
      ...rates.map((rate) => columnHead(`R@${rate}`)),
    ];
    byId("subgroups-table").replaceChildren(table(`Recall in subgroups, by ${report.protocol}, ${report.overlaps[key]}`, head, ...bodies));
    for (const button of byId("subgroups-iou").children)
      button.setAttribute("aria-pressed", button.dataset.key === key);
  }

  byId("subgroups-iou").append(
    ...keys.map((key) =>
      html("button", { type: "button", "data-key": key, onclick: () => show(key) }, report.overlaps[key]),
    ),
  );
  show(keys[0]);
}
