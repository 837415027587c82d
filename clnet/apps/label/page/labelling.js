// The label of a pair as the page edits it: for each view a Map from lesion id to box, or null if the pair
// lacks the view. The same id in both views is a link. It is never changed in place, so undo can keep old ones.

import { clipped, isTiny, overlap } from "./boxes.js";

export const VIEWS = ["cc", "mlo"];
export const otherView = (view) => (view === "cc" ? "mlo" : "cc");

const SAME_PLACE = 0.5; // IoU above which a box and a finding are the same

export function fromJson(label, views) {
  const boxesOf = (name) =>
    new Map((label?.[name]?.lesion_ids ?? []).map((lesion, place) => [lesion, label[name].boxes[place]]));
  return Object.fromEntries(VIEWS.map((name) => [name, views[name] ? boxesOf(name) : null]));
}

export function toJson(labelling) {
  const view = (boxes) => boxes && { boxes: [...boxes.values()], lesion_ids: [...boxes.keys()] };
  return { cc: view(labelling.cc), mlo: view(labelling.mlo) };
}

export function isSame(one, two) {
  return JSON.stringify(toJson(one)) === JSON.stringify(toJson(two));
}

// Each lesion once: [{lesion, cc: box or undefined, mlo: box or undefined}].
export function lesionsOf(labelling) {
  const ids = new Set(VIEWS.flatMap((name) => [...(labelling[name]?.keys() ?? [])]));
  return [...ids]
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .map((lesion) => ({
      lesion,
      cc: labelling.cc?.get(lesion),
      mlo: labelling.mlo?.get(lesion),
    }));
}

export function isLinked(labelling, lesion) {
  return VIEWS.every((name) => labelling[name]?.has(lesion));
}

export function freeLesion(labelling) {
  let number = 1;
  while (VIEWS.some((name) => labelling[name]?.has(String(number)))) number += 1;
  return String(number);
}

export function withBox(labelling, view, lesion, box) {
  return { ...labelling, [view]: new Map(labelling[view]).set(lesion, box) };
}

export function withoutBox(labelling, view, lesion) {
  return { ...labelling, [view]: new Map([...labelling[view]].filter(([id]) => id !== lesion)) };
}

export function withoutLesion(labelling, lesion) {
  return VIEWS.filter((name) => labelling[name]?.has(lesion)).reduce(
    (rest, name) => withoutBox(rest, name, lesion),
    labelling,
  );
}

function renamed(labelling, view, from, to) {
  const boxes = [...labelling[view]].map(([lesion, box]) => [lesion === from ? to : lesion, box]);
  return { ...labelling, [view]: new Map(boxes) };
}

// The CC box keeps its id; the one in MLO becomes a lesion of its own.
export function withoutLink(labelling, lesion) {
  return isLinked(labelling, lesion) ? renamed(labelling, "mlo", lesion, freeLesion(labelling)) : labelling;
}

// The lesion `mlo` of MLO becomes the lesion `cc` of CC; former partners become lesions of their own.
export function withLink(labelling, cc, mlo) {
  return cc === mlo ? labelling : renamed(withoutLink(labelling, cc), "mlo", mlo, cc);
}

// The lesion whose box is in the same place as another box, or null.
export function lesionAt(labelling, view, box) {
  const found = [...labelling[view]].find(([, other]) => overlap(box, other) > SAME_PLACE);
  return found ? found[0] : null;
}

function endsOf(labelling, finding) {
  return VIEWS.filter((name) => finding[name] && labelling[name]);
}

// Whether the label already contains the finding.
export function isCovered(labelling, finding) {
  const lesions = endsOf(labelling, finding).map((name) => lesionAt(labelling, name, finding[name].box));
  return lesions.every((lesion) => lesion !== null && lesion === lesions[0]);
}

// Adds the finding's boxes and the link between them, except boxes that the label already has.
export function withFinding(labelling, finding, sizes) {
  let next = labelling;
  const ends = {};
  for (const name of endsOf(labelling, finding)) {
    const box = clipped(finding[name].box, sizes[name]);
    if (isTiny(box)) continue;
    ends[name] = lesionAt(next, name, box) ?? freeLesion(next);
    if (!next[name].has(ends[name])) next = withBox(next, name, ends[name], box);
  }
  return ends.cc && ends.mlo ? withLink(next, ends.cc, ends.mlo) : next;
}
