// Asks what to do with unsaved changes, so that no boxes are lost.

// Resolves to "save", "discard" or "stay".
export function askAboutUnsaved(pairId) {
  const dialog = byId("unsaved");
  byId("unsaved-pair").textContent = pairId;
  dialog.returnValue = "stay"; // what Escape means
  dialog.showModal();
  return new Promise((answered) => {
    dialog.onclose = () => answered(dialog.returnValue || "stay");
  });
}

export function warnBeforeLeaving(isDirty) {
  addEventListener("beforeunload", (event) => {
    if (isDirty()) event.preventDefault();
  });
}
