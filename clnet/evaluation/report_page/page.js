"use strict";
// Puts the page together from the data in it.

function about(report) {
  const { counts, data } = report;
  byId("model").textContent = report.model;
  byId("about").textContent =
    `${data.name}, ${data.section}: ${plural(counts.pairs, "pair")} of ${plural(counts.patients, "patient")}, ` +
    `${plural(counts.images, "image")} (${number(counts.negative_images)} without a lesion), ` +
    `${plural(counts.lesions, "lesion")} with ${plural(counts.lesion_boxes, "box", "boxes")}, ` +
    `${plural(counts.detections, "detection")}, ${plural(counts.links, "link")}.`;
  if (counts.skipped_views) {
    byId("warning").hidden = false;
    byId("warning").textContent =
      `The findings say nothing about ${plural(counts.skipped_views, "image")}; they count as images in which nothing was found.`;
  }
  byId("colophon").textContent =
    `clnet ${report.version}. Research software, not for diagnosis. No patient is named on this page.`;
}

function reading(report) {
  const { settings } = report;
  const entries = {
    "R@t":
      "The recall at t false positives per image: the best among the score thresholds whose rate is at most t, without interpolation. All images count in the rate, also those without a lesion.",
    Hit:
      "Detections are taken by falling score. Each hits, among the lesions that it overlaps enough and that nothing has hit yet, the one that it overlaps most. " +
      `A further detection on a lesion that is already hit is ${settings.count_duplicates ? "a false positive" : "neither a hit nor a false positive"}.`,
    Units:
      "A box counts in each view. A lesion, a breast or a case is found if it is hit in at least one view.",
    Intervals: `95%, from ${number(settings.resamples)} bootstrap resamples of patients; each finds its own score thresholds.`,
    Links: `Those of score ${settings.link_score} or more. A link is right if both of its boxes lie on one lesion, or if its one box lies on a lesion that the other view does not show (the dustbin). A lesion is linked rightly once.`,
    Errors: `Told apart at ${settings.operating_rate} false positives per image and IoU ≥ ${report.errors.iou}. Moving the threshold of the viewer does not change them.`,
  };
  byId("reading-text").append(
    html(
      "dl",
      {},
      Object.entries(entries).map(([term, words]) => [html("dt", {}, term), html("dd", {}, words)]),
    ),
  );
}

function start() {
  const report = readJson("overview");
  about(report);
  headline(report);
  recallTable(report);
  frocCurve(report);
  linksTable(report);
  const open = makeViewer(report);
  errorsTable(report, makeGallery(report, open));
  subgroupsTable(report);
  reading(report);
}

start();
