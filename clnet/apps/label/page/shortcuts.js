// The keys, by section of the help: [title, [[description, {key: action}, [the keys as shown]], …]].

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
  const cancel = () => {
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
        ["add a box in the centre", { b: () => stage.drawInCentre() }, ["B"]],
        ["edit boxes", { e: () => desk.take("edit") }, ["E"]],
        ["next or previous box", { j: () => desk.selectNext(1), k: () => desk.selectNext(-1) }, ["J", "K"]],
        [
          "move by 1 or 10 pixels",
          { ...nudges("", 1), ...nudges("shift+", 10) },
          ["arrows", "Shift+arrows"],
        ],
        ["resize by 1 pixel", nudges("alt+", 1, true), ["Alt+arrows"]],
        [
          "delete the box",
          { Delete: () => desk.removeSelected(), Backspace: () => desk.removeSelected() },
          ["Delete"],
        ],
        ["undo or redo", { "ctrl+z": undo, "ctrl+shift+z": redo, "ctrl+y": redo }, ["Ctrl+Z", "Ctrl+Y"]],
        ["cancel or deselect", { Escape: cancel }, ["Esc"]],
      ],
    ],
    [
      "Links and findings",
      [
        ["link: click two boxes", { l: () => desk.take("link") }, ["L"]],
        ["link to the box selected with J", { Enter: () => desk.linkSelected() }, ["L", "J", "Enter"]],
        ["unlink", { u: () => desk.unlink() }, ["U"]],
        ["accept finding M1 … M9", numbers, ["1", "…", "9"]],
        ["accept all shown findings", { a: () => desk.accept(desk.openFindings) }, ["A"]],
        ["show or hide the findings", { m: then(() => (desk.showsModel = !desk.showsModel)) }, ["M"]],
      ],
    ],
    [
      "Pairs",
      [
        ["save", { s: () => session.save(), "ctrl+s": () => session.save() }, ["S"]],
        ["next or previous pair", { n: () => session.step(1), p: () => session.step(-1) }, ["N", "P"]],
        ["next sample from the server", { g: nextSample }, ["G"]],
        ["find a pair", { "/": () => byId("search").focus() }, ["/"]],
        ["show or hide the lists", { w: () => document.body.classList.toggle("wide") }, ["W"]],
        ["this help", { "?": () => byId("help").showModal() }, ["?"]],
      ],
    ],
    [
      "Images",
      [
        ["zoom at the pointer", { "+": zoom(1.25), "=": zoom(1.25), "-": zoom(0.8) }, ["wheel", "+", "−"]],
        ["move the image", { h: () => desk.take("pan") }, ["Space", "H"]],
        ["switch to the other view", { v: () => stage.goToOtherView() }, ["V"]],
        ["fit to the window", { f: () => stage.fit() }, ["F"]],
        ["one image pixel per screen pixel", { z: () => stage.showActualPixels() }, ["Z"]],
        ["adjust window and level", {}, ["right drag"]],
        ["invert", { i: then(() => (grey.inverted = !grey.inverted)) }, ["I"]],
        ["adjust both views or one", { c: then(() => grey.join(!grey.together, stage.active)) }, ["C"]],
        ["reset window and level", { r: then(() => grey.reset()) }, ["R"]],
      ],
    ],
  ];
}
