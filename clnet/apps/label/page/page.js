// The annotation page: creates its parts and connects them.

import { Desk } from "./desk.js";
import { GreyWindow } from "./grey.js";
import { fillHelp, listenToKeys } from "./keys.js";
import { sayError } from "./messages.js";
import { PairList } from "./pair_list.js";
import { drawPanel } from "./panel.js";
import { Pointer } from "./pointer.js";
import { Server } from "./server.js";
import { Session } from "./session.js";
import { keyTable } from "./shortcuts.js";
import { signIn } from "./sign_in.js";
import { Stage } from "./stage.js";
import { makeToolbar } from "./toolbar.js";
import { warnBeforeLeaving } from "./unsaved.js";

const server = new Server(signIn);
server.takeTokenFromAddress();
const desk = new Desk();
const grey = new GreyWindow();
const stage = new Stage(desk, grey);
const pointer = new Pointer(stage, desk, grey);
const list = new PairList((pairId) => session.open(pairId));
const session = new Session(server, desk, stage, list);

function drawSave() {
  const { pair, labelling, isDirty } = desk;
  const isEmpty = !labelling.cc?.size && !labelling.mlo?.size;
  const isSaved = pair.label !== null && !isDirty;
  byId("save").disabled = pair.pair_id === null || isSaved;
  byId("save").textContent = isSaved ? "Saved" : isEmpty ? "Save: no lesion" : "Save";
  byId("save").classList.toggle("primary", isDirty);
}

async function fillStrategies() {
  const names = Object.keys((await server.info()).strategies ?? {});
  byId("strategy").replaceChildren(
    ...names.map((name) => html("option", { value: name }, name.replaceAll("_", " "))),
  );
  byId("strategy").value = names.find((name) => name.includes("disagree")) ?? names[0] ?? "";
  byId("next-sample").disabled = names.length === 0;
}

function nextSample() {
  if (byId("strategy").value) session.nextSample(byId("strategy").value);
}

desk.addEventListener("change", () => {
  drawPanel(desk);
  drawSave();
});
byId("previous").addEventListener("click", () => session.step(-1));
byId("next").addEventListener("click", () => session.step(1));
byId("next-sample").addEventListener("click", nextSample);
byId("save").addEventListener("click", () => session.save());
byId("open-help").addEventListener("click", () => byId("help").showModal());
byId("remove-label").addEventListener("click", () => byId("remove").showModal());
byId("remove").addEventListener("close", (event) => {
  if (event.target.returnValue === "remove") session.removeLabel();
  event.target.returnValue = "";
});

makeToolbar(desk, stage, grey);
const keys = keyTable({ desk, stage, grey, session, pointer, nextSample });
listenToKeys(keys, pointer);
fillHelp(keys);
warnBeforeLeaving(() => desk.isDirty);
addEventListener("hashchange", () => session.openAddressed());
session.start();
fillStrategies().catch(sayError);
