// The list of pairs, with search by name and a filter by label.

const FILTERS = { all: () => true, open: (pair) => !pair.labelled, done: (pair) => pair.labelled };

export class PairList {
  // open(pair id) is called when the user chooses a pair.
  constructor(open) {
    this.open = open;
    this.pairs = [];
    this.current = null;
    this.filter = "all";
    byId("search").addEventListener("input", () => this.draw());
    byId("search").addEventListener("keydown", ({ key }) => {
      if (key === "Enter" && this.shown.length) this.open(this.shown[0].pair_id);
    });
    for (const button of document.querySelectorAll("#filters button")) {
      button.addEventListener("click", () => {
        this.filter = button.dataset.filter;
        this.draw();
      });
    }
  }

  fill({ pairs, left_out: leftOut }) {
    this.pairs = pairs;
    byId("left-out").hidden = !leftOut.length;
    byId("left-out-count").textContent = `${plural(leftOut.length, "image")} left out`;
    byId("left-out-list").replaceChildren(
      ...leftOut.map(({ image, reason }) => html("li", {}, html("b", {}, image), ` ${reason}`)),
    );
    this.draw();
  }

  get shown() {
    const words = byId("search").value.trim().toLowerCase();
    return this.pairs.filter(
      (pair) =>
        FILTERS[this.filter](pair) &&
        [pair.pair_id, pair.cc, pair.mlo].some((name) => name?.toLowerCase().includes(words)),
    );
  }

  // The id of the pair that many steps from the open one, or null.
  neighbour(step) {
    const shown = this.shown;
    const at = shown.findIndex((pair) => pair.pair_id === this.current);
    if (at < 0) return shown[0]?.pair_id ?? null;
    return shown[at + step]?.pair_id ?? null;
  }

  pairWith(image) {
    return this.pairs.find((pair) => pair.cc === image || pair.mlo === image)?.pair_id ?? null;
  }

  markOpen(pairId) {
    this.current = pairId;
    this.draw();
    byId("pairs").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  markLabelled(pairId, labelled) {
    this.pairs = this.pairs.map((pair) => (pair.pair_id === pairId ? { ...pair, labelled } : pair));
    this.draw();
  }

  draw() {
    const hadFocus = byId("pairs").contains(document.activeElement);
    const done = this.pairs.filter(FILTERS.done).length;
    const counts = { all: this.pairs.length, open: this.pairs.length - done, done };
    for (const button of document.querySelectorAll("#filters button")) {
      button.setAttribute("aria-pressed", String(button.dataset.filter === this.filter));
      button.querySelector("span").textContent = number(counts[button.dataset.filter]);
    }
    byId("progress").max = Math.max(counts.all, 1);
    byId("progress").value = done;
    byId("progress-words").textContent = `${number(done)} of ${plural(counts.all, "pair")} labelled`;
    const shown = this.shown;
    byId("no-pairs").hidden = shown.length > 0;
    byId("no-pairs").textContent = counts.all ? "No matching pairs." : "The server has no pairs.";
    byId("pairs").replaceChildren(...shown.map((pair) => this.entry(pair)));
    if (hadFocus) byId("pairs").querySelector("[aria-current]")?.focus();
  }

  entry(pair) {
    const views = ["cc", "mlo"].filter((name) => pair[name]);
    const alone = views.length < 2 ? `${views.join("").toUpperCase()} only` : "";
    return html(
      "li",
      {},
      html(
        "button",
        {
          type: "button",
          class: pair.labelled ? "done" : "",
          "data-pair": pair.pair_id,
          "aria-current": pair.pair_id === this.current ? "true" : null,
          title: [pair.pair_id, ...views.map((name) => `${name.toUpperCase()}: ${pair[name]}`)].join("\n"),
          onclick: () => this.open(pair.pair_id),
        },
        html(
          "span",
          { class: "mark", "aria-label": pair.labelled ? "labelled" : "not labelled" },
          pair.labelled ? "✓" : "",
        ),
        html("span", { class: "pair-name" }, pair.pair_id),
        html("small", {}, [pair.laterality, alone].filter(Boolean).join(" · ")),
        html("small", { class: "file-name" }, pair.cc ?? pair.mlo),
      ),
    );
  }
}
