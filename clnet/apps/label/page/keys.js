// The keyboard: one table says what a key does and what the help tells of it.

// Entries are [words, {key: act, …}, how the keys are written]; acts get the event.
export function listenToKeys(sections, pointer) {
  const acts = new Map(
    sections.flatMap(([, entries]) => entries.flatMap(([, keys]) => Object.entries(keys))),
  );
  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || isTheirs(event)) return;
    if (pointer.drag && event.key !== "Escape") return;
    if (event.key === " ") {
      event.preventDefault();
      pointer.holdSpace(true);
      return;
    }
    const act = acts.get(nameOf(event));
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  addEventListener("keyup", (event) => event.key === " " && pointer.holdSpace(false));
  addEventListener("blur", () => pointer.holdSpace(false));
  // After a click the keys are the stage's again, Space too; who came by keyboard (no detail) stays.
  addEventListener("click", ({ detail, target }) => {
    const isControl = target.closest("button, input[type=checkbox]") && !target.closest("dialog");
    if (detail > 0 && isControl) byId("stage").focus({ preventScroll: true });
  });
}

function nameOf(event) {
  const command = event.ctrlKey || event.metaKey;
  const isLetter = event.key.length === 1;
  return [
    command ? "ctrl" : null,
    event.altKey ? "alt" : null,
    event.shiftKey && (command || !isLetter) ? "shift" : null,
    isLetter ? event.key.toLowerCase() : event.key,
  ]
    .filter(Boolean)
    .join("+");
}

// Whether the key belongs to the control that has the focus.
function isTheirs(event) {
  const { target, key } = event;
  if (target.matches("select, textarea, input:not([type=range], [type=checkbox])")) {
    if (key === "Escape") target.blur();
    return true;
  }
  if (target.matches("input[type=range]")) return /^(Arrow|Home|End|Page)/.test(key);
  return target.matches("button, summary, input") && [" ", "Enter"].includes(key);
}

export function fillHelp(sections) {
  byId("help-keys").replaceChildren(
    ...sections.map(([title, entries]) =>
      html(
        "section",
        {},
        html("h3", {}, title),
        html(
          "dl",
          {},
          entries.map(([words, , written]) => [
            html(
              "dt",
              {},
              written.map((key) => html("kbd", {}, key)),
            ),
            html("dd", {}, words),
          ]),
        ),
      ),
    ),
  );
}
