// Which key does what, for each part of the help: [title, [[words, {key: act}, [the keys as written]], …]].

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function keyTable({ desk, stage, grey, session, pointer, nextSample }) {
  const then = (act) => () => {
    act();
    desk.changed();
  };
  const nudges = (prefix, step, resizing) =>
    Object.fromEntries(
      Object.entries(ARROWS).map(([key, [dx, dy]]) => [
        prefix + key,
        () => desk.nudge(step * dx, step * dy, resizing),
      ]),
    );
  const numbers = Object.fromEntries([..."123456789"].map((id) => [id, () => desk.acceptNumber(id)]));
  const zoom = (factor) => then(() => stage.activePane.viewport.zoomBy(factor));
  const letGo = () => {
    if (pointer.cancel()) return;
    if (desk.tool === "edit") desk.select(null);
    desk.take("edit");
  };
  const undo = () => desk.step("undo");
  const redo = () => desk.step("redo");

  return [
    [
      "Boxes",
      [
        ["draw a box", {}, ["drag"]],
        ["draw over a box", {}, ["Shift+drag"]],
        ["a box in the middle", { b: () => stage.drawInTheMiddle() }, ["B"]],
        ["edit", { e: () => desk.take("edit") }, ["E"]],
        ["next, previous box", { j: () => desk.selectNext(1), k: () => desk.selectNext(-1) }, ["J", "K"]],
        [
          "move by a pixel, by ten",
          { ...nudges("", 1), ...nudges("shift+", 10) },
          ["arrows", "Shift+arrows"],
        ],
        ["resize by a pixel", nudges("alt+", 1, true), ["Alt+arrows"]],
        [
          "delete the box",
          { Delete: () => desk.removeSelected(), Backspace: () => desk.removeSelected() },
          ["Delete"],
        ],
        ["undo, redo", { "ctrl+z": undo, "ctrl+shift+z": redo, "ctrl+y": redo }, ["Ctrl+Z", "Ctrl+Y"]],
        ["let go", { Escape: letGo }, ["Esc"]],
      ],
    ],
    [
      "Links and findings",
      [
        ["link: click two boxes", { l: () => desk.take("link") }, ["L"]],
        ["link with the box chosen by J", { Enter: () => desk.linkSelected() }, ["L", "J", "Enter"]],
        ["unlink", { u: () => desk.unlink() }, ["U"]],
        ["accept a finding M1 … M9", numbers, ["1", "…", "9"]],
        ["accept all that are shown", { a: () => desk.accept(desk.openFindings) }, ["A"]],
        ["show or hide the model", { m: then(() => (desk.showsModel = !desk.showsModel)) }, ["M"]],
      ],
    ],
    [
      "Pairs",
      [
        ["save", { s: () => session.save(), "ctrl+s": () => session.save() }, ["S"]],
        ["next, previous pair", { n: () => session.step(1), p: () => session.step(-1) }, ["N", "P"]],
        ["next sample of the server", { g: nextSample }, ["G"]],
        ["find a pair", { "/": () => byId("search").focus() }, ["/"]],
        ["hide or show the lists", { w: () => document.body.classList.toggle("wide") }, ["W"]],
        ["this help", { "?": () => byId("help").showModal() }, ["?"]],
      ],
    ],
    [
      "Pictures",
      [
        ["zoom at the pointer", { "+": zoom(1.25), "=": zoom(1.25), "-": zoom(0.8) }, ["wheel", "+", "−"]],
        ["move the picture", { h: () => desk.take("pan") }, ["Space", "H"]],
        ["the other view", { v: () => stage.goToOtherView() }, ["V"]],
        ["whole images", { f: () => stage.fit() }, ["F"]],
        ["pixel for pixel", { z: () => stage.showActualPixels() }, ["Z"]],
        ["window and level", {}, ["right drag"]],
        ["invert", { i: then(() => (grey.inverted = !grey.inverted)) }, ["I"]],
        ["both views or each its own", { c: then(() => grey.join(!grey.together, stage.active)) }, ["C"]],
        ["all greys again", { r: then(() => grey.reset()) }, ["R"]],
      ],
    ],
  ];
}
