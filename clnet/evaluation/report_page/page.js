"use strict";
// Builds the page from the data in it.

function about(report) {
  const { counts, data } = report;
  byId("model").textContent = report.model;
  byId("about").textContent =
    `${data.name}, ${data.section}: ${plural(counts.pairs, "pair")} of ${plural(counts.patients, "patient")}, ` +
    `${plural(counts.images, "image")} (${number(counts.negative_images)} without a lesion), ` +
    `${plural(counts.lesions, "lesion")} with ${plural(counts.lesion_boxes, "box", "boxes")}, ` +
    `${plural(counts.detections, "detection")}, ${plural(counts.links, "link")}. ` +
    `Counted by ${report.protocol}.`;
  if (counts.skipped_views) {
    byId("warning").hidden = false;
    byId("warning").textContent =
      `The findings do not cover ${plural(counts.skipped_views, "image")}; they count as images without detections.`;
  }
  byId("colophon").textContent =
    `clnet ${report.version}. Research software, not for diagnosis. No patient is named on this page.`;
}

const sentence = (words) => words[0].toUpperCase() + words.slice(1);

function reading(report) {
  const { settings } = report;
  const entries = {
    Protocol: `${sentence(report.protocol)}. The rules of ${settings.protocol}: ${report.protocol_description}.`,
    "R@t":
      (settings.interpolate
        ? "Recall at t false positives per image, interpolated linearly between the points of the FROC curve. "
        : "Recall at t false positives per image: the best recall among the score thresholds whose rate is at most t, without interpolation. ") +
      "The rate is over all images, including those without a lesion.",
    Hit:
      (settings.matching === "one_to_one"
        ? "As many detections as possible, at any score threshold, hit a lesion of their own whose IoU with them exceeds the threshold (Hungarian matching). "
        : "Detections are taken in descending order of score. Each hits, among the lesions whose IoU with it reaches the threshold and that are not hit yet, the one that it overlaps most. ") +
      `Another detection on a lesion that is already hit is ${settings.count_duplicates ? "a false positive" : "neither a hit nor a false positive"}.`,
    Units:
      "A box counts in each view. A lesion, a breast or a case is found if it is hit in at least one view.",
    Intervals: `95%, from ${number(settings.resamples)} bootstrap resamples of patients; each finds its own score thresholds.`,
    Links: `Those of score ${settings.link_score} or more. A link is right if both of its boxes match the same lesion, or if its only box matches a lesion that the other view does not show (the dustbin). A lesion is linked correctly once.`,
    Errors: `Classified at ${settings.operating_rate} false positives per image and ${report.overlaps[`iou=${report.errors.iou}`]}. Moving the threshold of the viewer does not change them.`,
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
