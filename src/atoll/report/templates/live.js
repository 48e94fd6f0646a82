"use strict";
// The live view's page: takes the stream of events, and shows the newest. All text goes in as text,
// never as HTML, because names come from foreign processes.

const OLD_S = 30, AGAIN_MS = 2000;
const COLUMNS = ["SLOT", "CPUS", "THREADS", "CPU", "HOME", "LOCAL", "MIGR/s", "GB/s", "MEMORY",
  "DRIFT"];
let paused = false, pictured = "";

function token() {
  // In the fragment it is sent to no server; it leaves the address bar and stays in this tab.
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token");
}

function ask(path, signal) {
  return fetch(path, { headers: { Authorization: `Bearer ${token()}` }, signal });
}

function say(text, bad = false) {
  const state = document.getElementById("state");
  state.textContent = text;
  state.className = bad ? "state-bad" : "soft";
}

function make(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

const share = (value) => value === null ? "–" : `${(100 * value).toFixed(0)} %`;
const size = (bytes) => bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB`
  : `${(bytes / 2 ** 20).toFixed(0)} MiB`;
const clock = (view) => new Date(1000 * view.at_unix_s).toLocaleTimeString();
const old = (age) => age !== null && age > OLD_S ? "old" : "";

function cores(cpulist) {
  return cpulist.split(",").reduce((sum, part) => {
    const [first, last = first] = part.split("-").map(Number);
    return sum + last - first + 1;
  }, 0);
}

function where(finding) {
  const thread = finding.tid === null ? "" : `tid ${finding.tid} (${finding.comm})`;
  return [finding.process, `pid ${finding.pid}`, thread, finding.mapping].filter(Boolean).join(" ");
}

function row(slot) {
  const line = document.createElement("tr");
  const nodes = Object.entries(slot.bytes_by_node);
  const total = nodes.reduce((sum, [, bytes]) => sum + bytes, 0);
  const cells = [
    [slot.slot === null ? "coordinator" : slot.slot],
    [slot.masked ? slot.cpus : "any"],
    [slot.threads, old(slot.masks_age_s), `seen ${slot.masks_age_s} s ago`],
    [slot.cpu.toFixed(2)],
    [share(slot.home_share), old(slot.runs_age_s), `seen ${slot.runs_age_s} s ago`],
    [share(slot.local_share), old(slot.memory_age_s), `seen ${slot.memory_age_s} s ago`],
    [slot.migrations_per_s === null ? "–" : slot.migrations_per_s.toFixed(1),
      old(slot.runs_age_s)],
    [slot.bytes_per_s === null ? "–" : (slot.bytes_per_s / 1e9).toFixed(1)],
    [total ? size(total) : "–", old(slot.memory_age_s),
      nodes.map(([node, bytes]) => `node ${node}: ${size(bytes)}`).join(", ")],
    [slot.drift || "none", slot.drift ? "drift" : ""],
  ];
  cells.forEach(([text, kind = "", tip = ""], at) => {
    const cell = make("td", text, `${kind} ${at > 1 ? "number" : ""}`);
    cell.title = tip;
    if (COLUMNS[at] === "CPU") {
      const bar = make("meter");
      bar.max = cores(slot.cpus);
      bar.value = slot.cpu;
      cell.prepend(bar);
    }
    line.append(cell);
  });
  return line;
}

function section(name) {
  const known = [...document.querySelectorAll("section")].find((one) => one.dataset.name === name);
  if (known) return known;
  const made = document.createElement("section");
  made.dataset.name = name;
  made.append(make("h2"), make("p", "", "what"), make("div", "", "panel picture"),
    make("div", "", "panel scroll"), make("ul", "", "notes findings"));
  const table = document.createElement("table");
  const head = document.createElement("tr");
  COLUMNS.forEach((title, at) => head.append(make("th", title, at > 1 ? "number" : "")));
  const top = document.createElement("thead");
  top.append(head);
  table.append(top, document.createElement("tbody"));
  made.querySelector(".scroll").append(table);
  document.getElementById("deployments").append(made);
  return made;
}

function show(view) {
  const names = view.deployments.map((one) => one.name);
  for (const gone of document.querySelectorAll("section")) {
    if (!names.includes(gone.dataset.name)) gone.remove();
  }
  for (const one of view.deployments) {
    const part = section(one.name);
    part.querySelector("h2").textContent = one.name;
    const what = part.querySelector(".what");
    what.textContent = `${one.engine} under ${one.policy}, ${one.state} ${one.error}`;
    what.className = one.state === "failed" ? "what drift" : "what soft";
    part.querySelector("tbody").replaceChildren(...one.slots.map(row));
    const hidden = Object.values(one.drift_by_code).reduce((sum, count) => sum + count, 0)
      - one.findings.length;
    const lines = one.findings.map((finding) => make("li", `${where(finding)}: ${finding.code}: `
      + `${finding.found} instead of ${finding.expected}. Likely cause: ${finding.cause}. `
      + `Remedy: ${finding.remedy}`));
    const which = one.up_s === null ? "--rendered DIR" : one.name;
    if (hidden > 0) lines.push(make("li", `and ${hidden} more: atoll verify ${which}`));
    part.querySelector(".findings").replaceChildren(...lines, ...one.unknown.map(
      (why) => make("li", `unknown: ${why}`, "soft")));
    mark(part, one);
  }
  document.getElementById("notices").replaceChildren(
    ...view.notices.map((notice) => make("li", notice, "drift")));
  document.getElementById("cost").textContent = view.cost === null ? ""
    : `The looks use ${(100 * view.cost).toFixed(2)} % of one core.`;
  if (names.length === 0) say("Nothing is up.");
  else say(`Live, at ${clock(view)}.`);
  const now = JSON.stringify(view.deployments.map((one) => [one.name, one.slots.length]));
  if (now !== pictured) {
    pictured = now;
    pictures(view).catch(() => { pictured = ""; });
  }
}

// The picture's cores have their slot's number as text; busy slots are opaque, drift has a border.
function mark(part, one) {
  const slots = new Map(one.slots.map((slot) => [String(slot.slot), slot]));
  for (const label of part.querySelectorAll(".picture text.tiny")) {
    const slot = slots.get(label.textContent), core = label.previousElementSibling;
    if (!slot || !core) continue;
    core.setAttribute("opacity", (0.35 + 0.65 * slot.cpu / cores(slot.cpus)).toFixed(2));
    core.classList.toggle("drifting", slot.outside > 0);
  }
}

async function pictures(view) {
  const answer = await ask("pictures");
  if (!answer.ok) throw new Error(answer.statusText);
  const drawings = await answer.json();
  for (const name of view.deployments.map((one) => one.name).filter((name) => drawings[name])) {
    const drawn = new DOMParser().parseFromString(drawings[name], "image/svg+xml").documentElement;
    section(name).querySelector(".picture").replaceChildren(document.importNode(drawn, true));
  }
  view.deployments.forEach((one) => mark(section(one.name), one));
}

// Whether to try again. A server that is silent, as one that is stopped, is given up.
async function follow() {
  const silence = new AbortController();
  const wait = (ms) => setTimeout(() => silence.abort(), ms);
  let timer = wait(1000 * OLD_S);
  try {
    const answer = await ask("events", silence.signal);
    if (!answer.ok) {
      say((await answer.text()).trim(), true);
      return answer.status === 503;
    }
    await read(answer, (view) => {
      clearTimeout(timer);
      timer = wait(1000 * Math.max(OLD_S, 3 * view.interval_s));
      if (paused) say(`Paused. The newest look was at ${clock(view)}.`);
      else show(view);
    });
    say("The stream has ended; trying again.", true);
  } catch {
    say("The server does not answer; trying again.", true);
  } finally {
    clearTimeout(timer);
  }
  return true;
}

async function read(answer, take) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    const last = events.pop();
    if (last) take(JSON.parse(last.slice("data: ".length)));
  }
}

async function main() {
  if (!token()) {
    say("This page needs its token: open the URL that 'atoll serve' printed.", true);
    return;
  }
  while (await follow()) await new Promise((resume) => setTimeout(resume, AGAIN_MS));
}

document.getElementById("pause").addEventListener("click", (event) => {
  paused = !paused;
  event.target.textContent = paused ? "Go on" : "Pause";
  event.target.setAttribute("aria-pressed", String(paused));
});
main();
