// The page: shows Try, Review or Report.
import { byId, notice, request } from "./page.js";
import { startReview, enterReview } from "./review.js";
import { startTry } from "./try.js";

const PARTS = ["try", "review", "report"];

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
  if (part === "report" && info.report && !byId("report-frame").src) byId("report-frame").src = "/report";
  window.scrollTo(0, 0);
}

async function start() {
  const info = await (await request("/api/info")).json();
  byId("run").textContent = info.name;
  const probabilities = `${info.calibrated ? "calibrated" : "uncalibrated"} probabilities`;
  byId("model").textContent = `${info.model}, ${probabilities}, sarb ${info.version}`;
  byId("no-review").hidden = info.review;
  byId("desk").hidden = !info.review;
  document.querySelector(".filter").hidden = !info.review;
  byId("no-report").hidden = info.report;
  byId("report-frame").hidden = byId("report-link").hidden = !info.report;
  startTry(info);
  if (info.review) startReview();
  window.addEventListener("hashchange", () => show(info));
  show(info);
}

start().catch((error) => notice(`The server does not respond: ${error.message}`));
