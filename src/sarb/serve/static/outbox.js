// What this tab tells the server: in order, one thing at a time, and again until the server has it.
// Review and Wall share it, so that an undo never overtakes an answer.
import { notice, post } from "./page.js";

export const RETRY = 2000; // milliseconds, after the server could not be reached
const FINAL = [400, 409, 422]; // sending it again would not help

export const POLL = 5000; // milliseconds, while others hold the last questions

export const who = stored("sarb-who", crypto.getRandomValues(new Uint32Array(3)).join("-"));
// What the server has not confirmed yet survives a reload,
// except an undo that was never sent: it does not yet name a question.
const sendable = (step) => step.path !== "undo" || step.question;
export const pending = JSON.parse(stored("sarb-pending", "[]")).filter(sendable);
export const outbox = { sending: false, undo: null }; // undo: the question that an undo would take back
const views = {};

function stored(key, initial) {
  if (sessionStorage.getItem(key) === null) sessionStorage.setItem(key, initial);
  return sessionStorage.getItem(key);
}

const keep = () => sessionStorage.setItem("sarb-pending", JSON.stringify(pending));

function drop() {
  pending.shift();
  keep();
}

// A view has ask(), what it wants to be asked next; take(reply, step); say(text); and render().
export function addView(name, view) {
  views[name] = view;
}

export const canUndo = () => Boolean(outbox.undo) || pending.some(saves);
export const saves = (step) => step.path === "answer" || step.path === "page";
export const answering = () => new Set(pending.flatMap((step) => (
  step.path === "answer" ? [step.question] : Object.keys(step.answers ?? {})
)));

// step: {view, path, ...body of the request}
export function enqueue(step) {
  pending.push(step);
  keep();
  if (!outbox.sending) send();
}

async function send() {
  outbox.sending = true;
  while (pending.length) {
    const { view: name, path, ...body } = pending[0];
    const view = views[name] ?? views.review; // a step from before the reload may have no view
    if (path !== "next") view.say("Saving …");
    if (path === "undo" && !body.question) { // with its id, so that sending it twice takes back one answer
      body.question = outbox.undo;
      pending[0] = { view: name, path, ...body };
      keep();
    }
    let reply;
    try {
      reply = await post(`/api/review/${path}`, { who, ...view.ask(), ...body });
    } catch (error) {
      await failed(view, error);
      continue;
    }
    outbox.undo = reply.progress.undo;
    drop();
    notice();
    view.take(reply, path);
  }
  outbox.sending = false;
  for (const view of Object.values(views)) view.render();
}

async function failed(view, error) {
  if (FINAL.includes(error.status)) {
    drop();
    view.say("");
    notice(error.message);
    return;
  }
  const reason = error.status ? error.message : "the server cannot be reached";
  notice(`Not saved yet, trying again: ${reason}`);
  await new Promise((resolve) => setTimeout(resolve, RETRY));
}

// What to say after a reply, and only then.
export function saved(reply, path) {
  const { out, problem } = reply.progress;
  if (problem) return `The table is not up to date: ${problem}`;
  const count = reply.undone.length;
  if (path === "undo" && count) return count === 1 ? "Taken back." : `${count} answers taken back.`;
  if (path === "answer" || path === "page") return `Saved. The reviewed table is ${out}`;
  return `Answers go to ${out}`;
}
