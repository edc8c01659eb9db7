// Review: one question at a time, answered with a key. The photo is shown plain; what the model thinks is
// told on a key or after the answer, so that it does not sway the answer.
import { byId, element, notice, percent, request } from "./page.js";
import { Picture, fromBase64, heatMap } from "./picture.js";
import { POLL, RETRY, addView, answering, canUndo, enqueue, outbox, pending, saved } from "./outbox.js";

const KEYS = {
  y: "yes", n: "no", s: "skip", u: "undo", h: "tell",
  ArrowRight: "yes", ArrowLeft: "no", ArrowDown: "skip", ArrowUp: "undo",
};

let assist = false; // show the model's opinion with every question
let queue = [];
let progress = null;
let timer = 0;
let entered = false;
let picture = null;
let drawn = null; // id of the question on the page
let telling = false; // the model's opinion is on the page
const told = new Set(); // ids of questions whose opinion has been on the page
const photos = new Map(); // question id -> promise of its photo
const heats = new Map(); // question id -> promise of its heat map

const category = () => byId("category").value || null;
const ask = (path) => enqueue({ view: "review", path });
const say = (text) => { byId("saved").textContent = text; };

export function startReview(info) {
  assist = info.assist;
  picture = new Picture(byId("picture"));
  addView("review", { ask: () => ({ category: category() }), take, say, render });
  for (const name of ["yes", "no", "skip", "undo", "tell"]) {
    byId(name).addEventListener("click", () => act(name));
  }
  byId("back").addEventListener("click", () => act("undo"));
  byId("reopen").addEventListener("click", () => ask("reopen"));
  byId("category").addEventListener("change", () => {
    queue = [];
    ask("next");
  });
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  const typing = event.target.closest("select, input, textarea");
  const shortcut = event.ctrlKey || event.metaKey || event.altKey;
  if (byId("review").hidden || typing || shortcut || event.repeat) return;
  const name = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!name) return;
  act(name);
  event.preventDefault();
}

export async function enterReview() {
  if (!entered) {
    entered = true;
    const categories = await (await request("/api/review")).json();
    for (const { label, questions } of categories) {
      if (questions) byId("category").append(element("option", { value: label, textContent: label }));
    }
  }
  ask("next"); // also on coming back: the wall may have answered what was on the page
}

function act(name) {
  if (name === "undo") {
    if (canUndo()) ask("undo");
  } else if (name === "tell") {
    if (queue.length) tell(queue[0], !telling);
  } else if (queue.length && !pending.some((step) => step.path === "undo")) {
    const question = queue.shift();
    tellAfter(question, name);
    enqueue({
      view: "review", path: "answer", question: question.id, answer: name, assisted: told.has(question.id),
    });
    render();
  }
}

function take(reply, path) {
  progress = reply.progress;
  const undone = reply.undone.at(-1);
  if (undone && category() && undone.label !== category()) {
    byId("category").value = "";
    pending.push({ view: "review", path: "next" });
  }
  if (undone) byId("told").textContent = "";
  const answered = answering();
  queue = reply.next.filter((question) => !answered.has(question.id));
  clearTimeout(timer);
  if (!queue.length && progress.open) timer = setTimeout(() => ask("next"), POLL);
  if (!(path === "next" && byId("saved").textContent)) say(saved(reply, path));
  render();
}

function remember(cache, question, load) {
  if (!cache.has(question.id)) {
    const loading = load(question);
    cache.set(question.id, loading);
    loading.catch(() => cache.delete(question.id));
    if (cache.size > 20) cache.delete(cache.keys().next().value);
  }
  return cache.get(question.id);
}

const photoOf = (question) => remember(photos, question, async ({ image }) => {
  const reply = await request(`/api/images/${image}`);
  return createImageBitmap(await reply.blob());
});

const heatOf = (question) => remember(heats, question, async ({ image, category: column }) => {
  const { grid, heat } = await (await request(`/api/images/${image}/heat/${column}`)).json();
  return heatMap(grid, fromBase64(heat));
});

function render() {
  const question = queue[0];
  const idle = !question && !pending.length && !outbox.sending;
  byId("card").hidden = !question;
  byId("done").hidden = !idle || !progress;
  byId("undo").disabled = !canUndo();
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
  byId("file").textContent = question.file_name;
  picture.canvas.dataset.question = "";
  picture.show(null); // never the last photo beside the next question
  tell(question, assist);
  photoOf(question).then((photo) => {
    if (drawn !== question.id) return;
    picture.show(photo);
    picture.canvas.dataset.question = question.id;
    picture.canvas.setAttribute("aria-label", `The photo ${question.file_name}`);
    for (const next of queue.slice(1)) { // load the next ones ahead
      photoOf(next).catch(() => {});
      if (assist) heatOf(next).catch(() => {});
    }
  }).catch((error) => {
    if (drawn !== question.id) return;
    picture.show(null);
    if (error.status) notice(error.message);
    else { // the server cannot be reached: try again
      drawn = null;
      setTimeout(render, RETRY);
    }
  });
}

// Shows or hides what the model thinks of the question on the page.
function tell(question, wanted) {
  telling = wanted;
  byId("tell").setAttribute("aria-expanded", String(wanted));
  byId("tell-word").textContent = wanted ? "Hide" : "Show";
  byId("opinion").hidden = !wanted;
  picture.lay(null);
  if (!wanted) return;
  told.add(question.id);
  byId("chance-bar").style.width = `${100 * question.probability}%`;
  byId("chance").textContent = `The model says ${percent(question.probability)}`;
  byId("reason").textContent = question.reason;
  Promise.all([heatOf(question), photoOf(question)]).then(([heat]) => {
    if (telling && drawn === question.id) picture.lay(heat);
  }).catch(() => {}); // the photo's own request reports a server that cannot be reached
}

function tellAfter(question, answer) {
  const said = answer === "skip" ? "you skipped it" : `you said ${answer}`;
  const text = `Before: ${question.label}, ${said}, the model says ${percent(question.probability)}.`;
  byId("told").textContent = text;
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
