// Review: one question at a time, answered with a key.
// Answers are sent in order, one at a time, and again until the server has them.
import { byId, element, notice, percent, post, request } from "./page.js";
import { Picture, fromBase64, heatMap } from "./picture.js";

const KEYS = {
  y: "yes", n: "no", s: "skip", u: "undo",
  ArrowRight: "yes", ArrowLeft: "no", ArrowDown: "skip", ArrowUp: "undo",
};
const RETRY = 2000; // milliseconds, after the server could not be reached
const POLL = 5000; // milliseconds, while others hold the last questions
const FINAL = [400, 409, 422]; // sending it again would not help

const who = stored("sarb-who", crypto.getRandomValues(new Uint32Array(3)).join("-"));
// What the server has not confirmed yet survives a reload,
// except an undo that was never sent: it does not yet name a question.
const sendable = (step) => step.path !== "undo" || step.question;
const pending = JSON.parse(stored("sarb-pending", "[]")).filter(sendable);
let queue = [];
let progress = null;
let sending = false;
let timer = 0;
let entered = false;
let picture = null;
let drawn = null; // id of the question on the page
const loaded = new Map(); // question id -> promise of [photo, heat]

const wait = (time) => new Promise((resolve) => setTimeout(resolve, time));
const category = () => byId("category").value || null;
const keep = () => sessionStorage.setItem("sarb-pending", JSON.stringify(pending));

function stored(key, initial) {
  if (sessionStorage.getItem(key) === null) sessionStorage.setItem(key, initial);
  return sessionStorage.getItem(key);
}

export function startReview() {
  picture = new Picture(byId("picture"));
  for (const name of ["yes", "no", "skip", "undo"]) byId(name).addEventListener("click", () => act(name));
  byId("back").addEventListener("click", () => act("undo"));
  byId("reopen").addEventListener("click", () => enqueue({ path: "reopen" }));
  byId("heat").addEventListener("change", () => {
    drawn = null;
    render();
  });
  byId("category").addEventListener("change", () => {
    queue = [];
    enqueue({ path: "next" });
  });
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  const typing = event.target.closest("select, input:not([type=checkbox]), textarea");
  const shortcut = event.ctrlKey || event.metaKey || event.altKey;
  if (byId("review").hidden || typing || shortcut || event.repeat) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "h") byId("heat").click();
  else if (KEYS[key]) act(KEYS[key]);
  else return;
  event.preventDefault();
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
    if (path === "undo" && !step.question) { // with its id, so that sending it twice takes back one answer
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
        const reason = error.status ? error.message : "the server cannot be reached";
        notice(`Not saved yet, trying again: ${reason}`);
        await wait(RETRY);
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
  if (!queue.length && progress.open) timer = setTimeout(() => enqueue({ path: "next" }), POLL);
  if (progress.problem) say(`The table is not up to date: ${progress.problem}`);
  else say(`Saved. The reviewed table is ${progress.out}`);
  render();
}

const say = (text) => { byId("saved").textContent = text; };

function load(question) {
  if (!loaded.has(question.id)) {
    loaded.set(question.id, Promise.all([loadPhoto(question), loadHeat(question)]));
    if (loaded.size > 20) loaded.delete(loaded.keys().next().value);
  }
  return loaded.get(question.id);
}

async function loadPhoto(question) {
  const reply = await request(`/api/images/${question.image}`);
  return createImageBitmap(await reply.blob());
}

async function loadHeat(question) {
  const reply = await request(`/api/images/${question.image}/heat/${question.category}`);
  const { grid, heat } = await reply.json();
  return heatMap(grid, fromBase64(heat));
}

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
  const label = element("b", { textContent: question.label });
  byId("question").replaceChildren("Does this photo show ", label, "?");
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
    // load the next ones ahead
    for (const next of queue.slice(1)) load(next).catch(() => {});
  }).catch((error) => {
    loaded.delete(question.id);
    if (drawn !== question.id) return;
    picture.show(null);
    if (error.status) notice(error.message);
    else { // the server cannot be reached: try again
      drawn = null;
      setTimeout(render, RETRY);
    }
  });
}

function finish() {
  drawn = null;
  const ofCategory = category() ? ` for ${category()}` : "";
  const held = `All open questions${ofCategory} are with somebody else (${progress.open} left).`;
  byId("done-text").textContent = progress.open
    ? `${held} This page checks again on its own.`
    : `No open question is left${ofCategory}.`;
  byId("reopen").hidden = !progress.skip;
  byId("reopen").textContent = `Ask the ${progress.skip} skipped again`;
  byId("back").hidden = !progress.undo;
}
