// The page: shows Try, Review, Wall or Report.
import { byId, notice, request } from "./page.js";
import { startReview, enterReview } from "./review.js";
import { startTry } from "./try.js";
import { startWall, enterWall } from "./wall.js";

const PARTS = ["try", "review", "wall", "report"];
const AUDITS = { valid: "validation", test: "test" };

function chosenPart(info) {
  const name = location.hash.slice(1);
  if (PARTS.includes(name)) return name;
  return info.review ? "review" : "try";
}

function show(info) {
  const part = chosenPart(info);
  for (const name of PARTS) byId(name).hidden = name !== part;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${part}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${part[0].toUpperCase()}${part.slice(1)} · ${info.name} · sarb`;
  if (part === "review" && info.review) enterReview();
  if (part === "wall" && info.review) enterWall();
  if (part === "report" && info.report && !byId("report-frame").src) byId("report-frame").src = "/report";
  window.scrollTo(0, 0);
}

async function start() {
  const info = await (await request("/api/info")).json();
  byId("run").textContent = info.name;
  const reading = `probabilities: ${info.probabilities}; thresholds: ${info.thresholds}`;
  byId("model").textContent = `${info.model}, sarb ${info.version}. What is shown: ${reading}`;
  for (const node of document.querySelectorAll(".no-review")) node.hidden = info.review;
  for (const node of document.querySelectorAll(".desk, .filter")) node.hidden = !info.review;
  if (AUDITS[info.ask]) {
    byId("review-title").textContent = `Audit of ${AUDITS[info.ask]} photos`;
    byId("wall-title").textContent = `Audit of ${AUDITS[info.ask]} photos: wall`;
  }
  byId("no-report").hidden = info.report;
  byId("report-frame").hidden = byId("report-link").hidden = !info.report;
  startTry(info);
  if (info.review) {
    startReview(info);
    startWall(info);
  }
  window.addEventListener("hashchange", () => show(info));
  show(info);
}

start().catch((error) => notice(`The server does not respond: ${error.message}`));
