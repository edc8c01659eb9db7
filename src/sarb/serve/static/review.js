// Review: one question at a time, answered with a key. Answers are sent in order, one by one, until the server has them.
import { byId, element, notice, percent, post, request } from "./page.js";
import { Picture, fromBase64, heatMap } from "./picture.js";

const KEYS = { y: "yes", n: "no", s: "skip", u: "undo", ArrowRight: "yes", ArrowLeft: "no", ArrowDown: "skip", ArrowUp: "undo" };
const AGAIN = 2000;
const WAITING = 5000;
const FINAL = [400, 409, 422]; // a refusal that will not become right by repeating it

const stored = (key, made) => sessionStorage.getItem(key) ?? (sessionStorage.setItem(key, made), made);
const who = stored("sarb-who", crypto.getRandomValues(new Uint32Array(3)).join("-"));
// What the server has not confirmed yet survives a reload. An undo that was never sent does not: it names nothing.
const pending = JSON.parse(stored("sarb-pending", "[]")).filter((step) => step.path !== "undo" || step.question);
let queue = [];
let progress = null;
let sending = false;
let timer = 0;
let entered = false;
let picture = null;
const loaded = new Map(); // question id -> promise of [photo, heat]

const wait = (time) => new Promise((resolve) => setTimeout(resolve, time));
const category = () => byId("category").value || null;
const keep = () => sessionStorage.setItem("sarb-pending", JSON.stringify(pending));

export function startReview() {
  picture = new Picture(byId("picture"));
  for (const name of ["yes", "no", "skip", "undo"]) byId(name).addEventListener("click", () => act(name));
  byId("back").addEventListener("click", () => act("undo"));
  byId("reopen").addEventListener("click", () => enqueue({ path: "reopen" }));
  byId("heat").addEventListener("change", () => { drawn = null; render(); });
  byId("category").addEventListener("change", () => { queue = []; enqueue({ path: "next" }); });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("select, input:not([type=checkbox]), textarea");
    if (byId("review").hidden || typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "h") byId("heat").click();
    else if (KEYS[key]) act(KEYS[key]);
    else return;
    event.preventDefault();
  });
}

export async function enterReview() {
  if (entered) return;
  entered = true;
  const categories = await (await request("/api/review")).json();
  for (const { label, questions } of categories) {
    if (questions) byId("category").append(element("option", { value: label, textContent: label }));
  }
  enqueue({ path: "next" });
}

function act(name) {
  if (name === "undo") {
    if (progress && (progress.undo || pending.length)) enqueue({ path: "undo" });
  } else if (queue.length && !pending.some((step) => step.path === "undo")) {
    const question = queue.shift();
    enqueue({ path: "answer", question: question.id, answer: name });
    render();
  }
}

function enqueue(step) {
  pending.push(step);
  keep();
  if (!sending) send();
}

async function send() {
  sending = true;
  while (pending.length) {
    const { path, ...step } = pending[0];
    if (path !== "next") say("Saving …");
    if (path === "undo" && !step.question) { // named now, so that sending it twice takes back one answer
      step.question = progress.undo;
      pending[0] = { path, ...step };
      keep();
    }
    try {
      const reply = await post(`/api/review/${path}`, { who, category: category(), ...step });
      pending.shift();
      keep();
      notice();
      take(reply);
    } catch (error) {
      if (FINAL.includes(error.status)) {
        pending.shift();
        keep();
        notice(error.message);
      } else {
        notice(`Not saved yet, trying again: ${error.status ? error.message : "the server cannot be reached"}`);
        await wait(AGAIN);
      }
    }
  }
  sending = false;
  render();
}

function take(reply) {
  progress = reply.progress;
  if (reply.undone && category() && reply.undone.label !== category()) {
    byId("category").value = "";
    pending.push({ path: "next" });
  }
  const answered = new Set(pending.filter((step) => step.path === "answer").map((step) => step.question));
  queue = reply.next.filter((question) => !answered.has(question.id));
  clearTimeout(timer);
  if (!queue.length && progress.open) timer = setTimeout(() => enqueue({ path: "next" }), WAITING);
  say(progress.problem ? `The table is not up to date: ${progress.problem}` : `Saved. The table is ${progress.out}`);
  render();
}

const say = (text) => { byId("saved").textContent = text; };

function load(question) {
  if (!loaded.has(question.id)) {
    const photo = request(`/api/images/${question.image}`).then((reply) => reply.blob()).then(createImageBitmap);
    const heat = request(`/api/images/${question.image}/heat/${question.category}`).then((reply) => reply.json())
      .then((found) => heatMap(found.grid, fromBase64(found.heat)));
    loaded.set(question.id, Promise.all([photo, heat]));
    if (loaded.size > 20) loaded.delete(loaded.keys().next().value);
  }
  return loaded.get(question.id);
}

let drawn = null;

function render() {
  const question = queue[0];
  const idle = !question && !pending.length && !sending;
  byId("card").hidden = !question;
  byId("done").hidden = !idle || !progress;
  byId("undo").disabled = !(progress && (progress.undo || pending.length));
  if (progress) {
    const { yes, no, skip, questions, open } = progress;
    byId("progress").max = questions || 1;
    byId("progress").value = questions - open;
    byId("counts").textContent = `${yes + no} answered, ${skip} skipped, ${open} open`;
  }
  if (question) draw(question);
  else if (idle && progress) finish();
}

function draw(question) {
  if (drawn === question.id) return;
  drawn = question.id;
  byId("question").replaceChildren("Is there ", element("b", { textContent: question.label }), " in this photo?");
  byId("chance-bar").style.width = `${100 * question.probability}%`;
  byId("chance").textContent = `The model says ${percent(question.probability)}`;
  byId("reason").textContent = question.reason;
  byId("file").textContent = question.file_name;
  picture.lay(null);
  picture.canvas.dataset.question = "";
  load(question).then(([photo, heat]) => {
    if (drawn !== question.id) return;
    picture.show(photo);
    picture.lay(byId("heat").checked ? heat : null);
    picture.canvas.dataset.question = question.id;
    picture.canvas.setAttribute("aria-label", question.file_name);
    queue.slice(1).forEach((next) => load(next).catch(() => {})); // the next ones are there when they are needed
  }).catch((error) => {
    loaded.delete(question.id);
    if (drawn !== question.id) return;
    picture.show(null);
    if (error.status) notice(error.message);
    else { // the server cannot be reached; the photo comes when it can
      drawn = null;
      setTimeout(render, AGAIN);
    }
  });
}

function finish() {
  drawn = null;
  const where = category() ? ` for ${category()}` : "";
  byId("done-text").textContent = progress.open
    ? `The last ${progress.open} open questions${where} are with somebody else. This page asks again by itself.`
    : `No open question is left${where}.`;
  byId("reopen").hidden = !progress.skip;
  byId("reopen").textContent = `Ask the ${progress.skip} skipped again`;
  byId("back").hidden = !progress.undo;
}
