// Wall: a page of photos for one category. Mark the odd ones, answer the whole page at once.
import { byId, element, percent, request } from "./page.js";
import { POLL, addView, canUndo, enqueue, outbox, pending, saved, saves } from "./outbox.js";
import { Thumbnails } from "./thumbnails.js";

const PAGE = 24;
const LOOK = 300; // milliseconds before a page takes an answer: a second Enter must not answer a page unseen
const REMEMBERED = 500; // marks of the last pages, so that an undo brings them back
const OPPOSITE = { yes: "no", no: "yes" };
const SYMBOL = { yes: "✓", no: "✕", skip: "?" };
const SPOKEN = { yes: "yes", no: "no", skip: "not sure" };
const STEPS = { ArrowLeft: () => -1, ArrowRight: () => 1, ArrowUp: () => -columns(), ArrowDown: columns };
const KEYS = { u: "wall-undo", f: "flip", h: "wall-tell" };

let categories = [];
let page = []; // the questions on the page
let progress = null;
let current = 0; // the tile that the keyboard is on
let looking = 0; // timer of LOOK
let telling = false;
let told = false; // the model's opinion has been on this page
let timer = 0;
const kept = JSON.parse(sessionStorage.getItem("sarb-wall") ?? "{}");
const marks = new Map(kept.marks); // question id -> answer, where it is not the page's default
let base = kept.base ?? "yes"; // the answer of photos that are not marked
const thumbnails = new Thumbnails(() => render());

const category = () => byId("wall-category").value;
const order = () => byId("wall-order").value || null;
const answerOf = (question) => marks.get(question.id) ?? base;
const tiles = () => [...byId("tiles").querySelectorAll("button")];
const say = (text) => { byId("wall-saved").textContent = text; };
const ask = (path) => enqueue({ view: "wall", path });

function keep() {
  const last = [...marks].slice(-REMEMBERED);
  const state = { category: category(), order: byId("wall-order").value, base, marks: last };
  sessionStorage.setItem("sarb-wall", JSON.stringify(state));
}

export function startWall(info) {
  telling = info.assist;
  byId("wall-random").hidden = byId("wall-random").disabled = info.ask === "train";
  byId("wall-order").value = kept.order ?? (info.ask === "train" ? "likely" : "");
  const asking = () => ({ category: category(), order: order(), count: PAGE, ahead: PAGE });
  addView("wall", { ask: asking, take, say, render });
  for (const name of ["wall-category", "wall-order"]) byId(name).addEventListener("change", turn);
  byId("answer-page").addEventListener("click", answerPage);
  byId("wall-undo").addEventListener("click", () => { if (canUndo()) ask("undo"); });
  byId("wall-back").addEventListener("click", () => { if (canUndo()) ask("undo"); });
  byId("flip").addEventListener("click", flip);
  byId("wall-tell").addEventListener("click", () => { telling = !telling; render(); });
  byId("wall-reopen").addEventListener("click", reopen);
  byId("next-category").addEventListener("click", () => {
    byId("wall-category").value = byId("next-category").dataset.label;
    turn();
  });
  document.addEventListener("keydown", pressed);
}

export async function enterWall() {
  categories = (await (await request("/api/review")).json()).filter(({ questions }) => questions);
  const last = category() || kept.category;
  byId("wall-category").replaceChildren(...categories.map(({ label }) => (
    element("option", { value: label, textContent: label })
  )));
  const open = categories.find((one) => one.open) ?? categories[0];
  byId("wall-category").value = categories.some(({ label }) => label === last) ? last : open.label;
  turn();
}

const nextCategory = () => categories.find(({ label, open }) => open && label !== category());

// Another category or another order.
function turn() {
  if (!category()) return; // the list is on its way, and enterWall will turn the page
  page = [];
  keep();
  ask("next");
  render();
}

function pressed(event) {
  const choosing = event.target.closest("select, input, textarea");
  const shortcut = event.ctrlKey || event.metaKey || event.altKey;
  if (byId("wall").hidden || choosing || shortcut || event.repeat) return;
  const control = event.target.closest("a, button"); // it has its own Space and Enter
  const tile = control?.classList.contains("tile");
  if (KEYS[event.key.toLowerCase()]) byId(KEYS[event.key.toLowerCase()]).click();
  else if (STEPS[event.key] && page.length) focusTile(current + STEPS[event.key]());
  else if (event.key === "Enter" && (tile || !control)) answerPage();
  else if (event.key === " " && !control && page.length) tiles()[current].click();
  else return;
  event.preventDefault();
}

function columns() {
  const [first, ...rest] = tiles();
  const inRow = rest.findIndex((tile) => tile.offsetTop > first.offsetTop);
  return inRow < 0 ? page.length : inRow + 1;
}

function focusTile(number) {
  if (number < 0 || number >= page.length) return;
  current = number;
  tiles().forEach((tile, place) => { tile.tabIndex = place === current ? 0 : -1; });
  tiles()[current].focus();
}

// A click leads from the page's answer to the opposite, to not sure, and back.
function mark(question) {
  const cycle = [base, OPPOSITE[base], "skip"];
  const next = cycle[(cycle.indexOf(answerOf(question)) + 1) % 3];
  marks.delete(question.id);
  if (next !== base) marks.set(question.id, next);
  keep();
  render();
}

function flip() {
  base = OPPOSITE[base];
  for (const { id } of page) marks.delete(id);
  keep();
  render();
}

function reopen() {
  marks.clear();
  ask("reopen");
}

const complete = () => page.length > 0 && page.every(({ image }) => thumbnails.settled(image));

// The page stays until the server has the answers; then comes the next.
function answerPage() {
  const waiting = pending.some((step) => step.path === "undo" || saves(step));
  if (!complete() || !byId("tiles").dataset.seen || waiting) return;
  const answers = {};
  for (const question of page) {
    answers[question.id] = thumbnails.broken(question.image) ? "skip" : answerOf(question);
    marks.set(question.id, answers[question.id]); // an undo shows them again
  }
  keep();
  const name = crypto.getRandomValues(new Uint32Array(2)).join("-");
  enqueue({ view: "wall", path: "page", page: name, answers, order: order(), assisted: told });
  render();
}

function take(reply, path) {
  progress = reply.progress;
  const undone = reply.undone.at(-1);
  if (undone && undone.label !== category()) {
    byId("wall-category").value = undone.label;
    pending.push({ view: "wall", path: "next" });
  }
  const next = reply.next.filter(({ label }) => label === category());
  const same = page.length && page.every(({ id }, number) => next[number]?.id === id);
  if (!same) show(next);
  for (const number of reply.ahead) thumbnails.of(number);
  clearTimeout(timer);
  if (!page.length && progress.open) timer = setTimeout(() => ask("next"), POLL);
  if (!(path === "next" && byId("wall-saved").textContent)) say(saved(reply, path));
  render();
}

function render() {
  if (!progress) return;
  const idle = !page.length && !pending.length && !outbox.sending;
  byId("tiles-card").hidden = !page.length;
  byId("wall-done").hidden = !idle;
  byId("wall-undo").disabled = !canUndo();
  const { yes, no, skip, questions, open } = progress;
  byId("wall-progress").max = questions || 1;
  byId("wall-progress").value = questions - open;
  byId("wall-counts").textContent = `${yes + no} answered, ${skip} skipped, ${open} open`;
  if (page.length) describe();
  else if (idle) finish();
}

function show(questions) {
  page = questions;
  told = false;
  current = 0;
  byId("tiles").dataset.seen = "";
  clearTimeout(looking);
  looking = setTimeout(() => { byId("tiles").dataset.seen = "yes"; }, LOOK);
  byId("tiles").replaceChildren(...page.map((question, number) => {
    const button = element("button", { className: "tile", type: "button", tabIndex: number ? -1 : 0 });
    button.dataset.question = question.id;
    button.append(thumbnails.of(question.image), element("span", { className: "sign" }),
      element("span", { className: "chance" }));
    button.addEventListener("click", () => {
      current = number;
      mark(question);
    });
    return element("li", {}, button);
  }));
  byId("tiles-card").hidden = !page.length; // what is hidden takes no focus
  const choosing = document.activeElement.closest("select");
  if (!byId("wall").hidden && !choosing) focusTile(0);
}

// The texts of the page: what is asked, what each tile would answer, what the button would save.
function describe() {
  const wanted = element("b", { textContent: base === "yes" ? "do not show" : "show" });
  const label = element("b", { textContent: category() });
  byId("wall-question").replaceChildren("Mark the photos that ", wanted, " ", label, ".");
  told ||= telling;
  byId("wall-tell").setAttribute("aria-pressed", String(telling));
  byId("flip-word").textContent = base === "yes" ? "show it" : "do not";
  const counts = { yes: 0, no: 0, skip: 0 };
  tiles().forEach((tile, number) => {
    const question = page[number];
    const broken = thumbnails.broken(question.image);
    const answer = broken ? "skip" : answerOf(question);
    counts[answer] += 1;
    tile.dataset.answer = answer;
    tile.dataset.state = thumbnails.settled(question.image) ? "ready" : "loading";
    tile.setAttribute("aria-pressed", { [base]: "false", skip: "mixed" }[answer] ?? "true");
    const chance = telling ? percent(question.probability) : "";
    const said = broken ? "cannot be shown" : `${SPOKEN[answer]}${chance && `, the model says ${chance}`}`;
    tile.setAttribute("aria-label", `Photo ${number + 1} of ${page.length}, ${question.file_name}: ${said}`);
    tile.querySelector(".sign").textContent = SYMBOL[answer];
    tile.querySelector(".chance").textContent = broken ? "cannot be shown" : chance;
  });
  byId("answer-page").disabled = !complete() || pending.some(saves);
  const parts = Object.entries(counts).filter(([, count]) => count);
  byId("answer-text").textContent = parts.map(([word, count]) => `${count} ${SPOKEN[word]}`).join(", ");
}

function finish() {
  const here = categories.find(({ label }) => label === category());
  if (here) here.open = progress.open;
  byId("wall-done-text").textContent = progress.open
    ? `All open photos for ${category()} are with somebody else (${progress.open} left). `
      + "This page checks again on its own."
    : `No photo is left for ${category()}.`;
  const next = nextCategory();
  byId("next-category").hidden = !next;
  if (next) {
    byId("next-category").dataset.label = next.label;
    byId("next-category").textContent = `Go on with ${next.label}`;
  }
  byId("wall-reopen").hidden = !progress.skip;
  byId("wall-reopen").textContent = `Ask the ${progress.skip} skipped again`;
  byId("wall-back").hidden = !progress.undo;
}
