// One line for messages: errors stay until dismissed, the rest disappears.

const SHOWN_FOR = 5000; // milliseconds

let timer = null;

export function say(words, kind = "done") {
  clearTimeout(timer);
  const [status, alert] = [byId("status"), byId("alert")];
  status.textContent = kind === "done" ? words : "";
  byId("alert-words").textContent = kind === "error" ? words : "";
  alert.hidden = kind !== "error";
  if (kind === "done") timer = setTimeout(() => (status.textContent = ""), SHOWN_FOR);
}

export function sayError(error) {
  if (error.name === "AbortError") return;
  say(error.message, "error");
}

byId("alert-close").addEventListener("click", () => say(""));
