// The keyboard: one table holds the action of each key and its line in the help.

// Entries are [description, {key: action, …}, the keys as shown]; actions receive the event.
export function listenToKeys(sections, pointer) {
  const acts = new Map(
    sections.flatMap(([, entries]) => entries.flatMap(([, keys]) => Object.entries(keys))),
  );
  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || belongsToControl(event)) return;
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
  // After a click, keys go to the stage again, even Space; keyboard users (no detail) keep the focus.
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

// Whether the focused control handles the key itself.
function belongsToControl(event) {
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
