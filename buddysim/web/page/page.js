// The form, the address, the charts. All numbers come from Python in the worker.
const FIELDS = ["model", "machine", "memory", "recipe", "optimizer", "batch", "sequence", "lora", "fsdp", "link", "qlora"];
const DEFAULTS = { ...Object.fromEntries(FIELDS.map((field) => [field, ""])), model: "llama-3.1-8b", machine: "h100-sxm", batch: "1" };
const LARGEST_IN_LINK = 20000;
const GIB = 2 ** 30;
const $ = (id) => document.getElementById(id);
const form = $("question");
const state = { number: 0, points: [], texts: {}, dropped: null, sentence: "" };
let worker;

function startWorker() {
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => handle(data);
  worker.onerror = (event) => show("doing", `the simulator stopped: ${event.message}`);
}

function show(id, text) { $(id).textContent = text; }
const gib = (bytes) => `${(bytes / GIB).toFixed(2)} GiB`;
const ms = (value) => `${Number(value.toPrecision(4))} ms`;

function handle(data) {
  if (data.part === "ready") return fill(data.choices);
  if (data.number !== undefined && data.number !== state.number) return;
  ({ start: begun, scheme: addScheme, end: ended, search: searching, plan: planned, error: refused, failed })[data.part](data);
}

function fill(choices) {
  const first = $("model").options.length === 0;
  if (first) {
    options("model", choices.model);
    options("machine", Object.keys(choices.machine), (name) => `${name} (${(choices.machine[name] / GIB).toFixed(0)} GiB)`);
    options("link", ["", ...choices.link], (name) => name || "of the GPU");
    options("recipe", ["", ...choices.recipe], (name) => name || "of the model");
    options("optimizer", ["", ...choices.optimizer], (name) => name || "of the model");
    askAddress();
    navigator.serviceWorker?.register("offline.js").catch(() => {}); // a private window has none
  }
}

function options(field, names, text = (name) => name) {
  $(field).replaceChildren(...names.map((name) => new Option(text(name), name)));
}

const valueOf = (field) => (field === "qlora" ? ($("qlora").checked ? "1" : "") : $(field).value.trim());

// What the address asks. A name that no list has selects nothing: `ask` says so.
function askAddress() {
  const requested = new URLSearchParams(location.hash.slice(1));
  for (const field of FIELDS) {
    const value = requested.get(field) ?? DEFAULTS[field];
    if (field === "qlora") $("qlora").checked = value !== "";
    else $(field).value = value;
  }
  state.dropped = null;
  $("file").value = "";
  $("config").value = requested.get("config") ?? "";
  state.unknown = Object.fromEntries(FIELDS.filter((field) => $(field).selectedIndex === -1).map((field) => [field, requested.get(field)]));
  if (requested.has("omitted")) {
    clear();
    return refused({ field: "model", line: `${requested.get("omitted")}: the link is without it: paste or choose it` });
  }
  ask({ ofAddress: true });
}

// A question of the form is a step of the browser's history; what the address asks is in it already.
function writeAddress(ofAddress) {
  const requested = new URLSearchParams();
  for (const field of FIELDS) if (valueOf(field) !== DEFAULTS[field]) requested.set(field, valueOf(field));
  const { value: config } = $("config");
  const omitted = state.dropped ? Object.keys(state.dropped)[0] : config.length > LARGEST_IN_LINK ? "config.json" : "";
  if (omitted) requested.set("omitted", omitted);
  else if (config.trim()) requested.set("config", config);
  show("omitted", omitted ? `The link is without ${omitted}: ${state.dropped ? "files stay on this computer" : `it has more than ${LARGEST_IN_LINK} characters`}.` : "");
  if (`#${requested}` === (location.hash || "#")) return;
  if (ofAddress) history.replaceState(null, "", `#${requested}`);
  else history.pushState(null, "", `#${requested}`);
}

function clear() {
  if (state.isSearching) restart();
  state.number += 1;
  Object.assign(state, { points: [], texts: {}, sentence: "", memory: null });
  for (const line of document.querySelectorAll(".error")) line.textContent = "";
  for (const id of ["sentence", "command", "value", "error-time", "memory-title", "time-title"]) show(id, "");
  for (const id of ["plan", "caveats", "legend"]) $(id).replaceChildren();
  for (const id of ["memory-chart", "schemes-chart", "time-chart"]) { Plotly.purge($(id)); $(id).values = []; }
  for (const button of document.querySelectorAll("[data-download]")) button.disabled = true;
}

function ask({ ofAddress = false } = {}) {
  clear();
  const blank = FIELDS.find((field) => $(field).selectedIndex === -1);
  if (blank) return refused({ field: blank, line: `${state.unknown[blank]}: unknown: choose one of the list` });
  writeAddress(ofAddress);
  const question = Object.fromEntries(FIELDS.map((field) => [field, valueOf(field)]));
  const files = state.dropped ?? ($("config").value.trim() ? { "config.json": $("config").value } : {});
  if (Object.values(files).some((content) => content.length > 5 * 2 ** 20)) {
    return refused({ field: "model", line: `${Object.keys(files)[0]}: more than 5 MiB: expected a smaller file` });
  }
  state.requested = { question, files };
  $("cancel").disabled = false;
  $("progress").removeAttribute("value");
  show("doing", "simulating");
  worker.postMessage({ number: state.number, question, files });
}

// Python can't be interrupted where a search computes: its worker is replaced.
function restart() {
  worker.terminate();
  state.isSearching = false;
  startWorker();
}

function cancel() {
  restart();
  state.number += 1;
  idle(state.points.length ? `cancelled after ${state.points.length} schemes` : "cancelled");
}

function idle(text) {
  $("cancel").disabled = true;
  $("progress").value = 0;
  show("doing", text);
}

function begun({ command }) { show("command", command); }

function addScheme(part) {
  state.points.push(part);
  show("sentence", part.sentence);
  $("progress").value = part.done / part.of;
  show("doing", `${part.done} of ${part.of} schemes`);
  if (part.memory) drawMemory(part);
  drawSchemes();
}

function ended(part) {
  state.sentence = part.sentence;
  show("sentence", part.sentence);
  idle(`${state.points.length} schemes simulated${Object.keys(part.skipped).length ? `; not in the browser or not with these options: ${Object.keys(part.skipped).join(", ")}` : ""}`);
  if (part.memory) drawMemory(part);
  state.texts = { json: part.json, csv: part.csv };
  for (const name of ["json", "csv", "png"]) document.querySelector(`[data-download=${name}]`).disabled = false;
  $("caveats").replaceChildren(...part.caveats.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  drawSchemes();
  if (state.points[0].fits) drawPlan({ rows: [], lines: ["keep all: no plan is needed"] });
  else search();
}

function search() {
  const { question, files } = state.requested;
  state.isSearching = true;
  $("cancel").disabled = false;
  $("progress").removeAttribute("value");
  show("sentence", `${state.sentence}; looking for a plan`);
  worker.postMessage({ number: state.number, question: { ...question, command: "fit" }, files });
}

function searching({ plans, time_ms: time, used_bytes: used }) {
  show("doing", `plan ${plans}: ${ms(time)}, ${gib(used)}`);
}

function planned(part) {
  state.isSearching = false;
  state.points.push({ scheme: "plan of fit", fits: part.fits, lossy: false, nothing: "", time_ms: part.time_ms, time_min_ms: part.time_min_ms,
    time_max_ms: part.time_max_ms, used_bytes: part.used_bytes, capacity_bytes: part.capacity_bytes });
  idle(part.lines[0]);
  show("sentence", part.sentence || `${state.sentence}${part.fits ? "" : ", and no plan does"}`);
  state.texts.py = part.py;
  document.querySelector("[data-download=py]").disabled = !part.py;
  drawPlan(part);
  drawMemory(part);
  drawSchemes();
}

function drawPlan({ rows, lines, placement, scheme, bound_ms: bound, excess, command }) {
  const texts = [...lines];
  if (scheme) texts.push(`plan: that of ${scheme}`);
  if (placement && placement !== "on the GPU") texts.push(placement);
  if (bound) texts.push(`no plan takes less than ${ms(bound)}: the best one may be ${(100 * (excess ?? 0)).toFixed(1)} % faster`);
  if (command) texts.push(command);
  const made = [];
  if (rows.length) {
    const table = document.createElement("table");
    const add = (cells, kind) => {
      const row = table.insertRow();
      cells.forEach((text, number) => {
        const cell = document.createElement(kind);
        cell.textContent = text;
        if (number > 1) cell.className = "number";
        if (kind === "th") cell.scope = "col";
        row.append(cell);
      });
    };
    add(["groups", "what is saved", "held", "recomputed", "on the link"], "th");
    for (const row of rows) {
      add([row.first === row.last ? row.first : `${row.first}-${row.last}`, row.choice, gib(row.held_bytes),
        row.recompute_ms ? ms(row.recompute_ms) : "-", row.link_ms ? ms(row.link_ms) : "-"], "td");
    }
    made.push(table);
  }
  made.push(...texts.map((text) => Object.assign(document.createElement("p"), { textContent: text })));
  $("plan").replaceChildren(...made);
}

function refused({ field, line }) {
  if (state.isSearching) return failedSearch(line);
  clear();
  idle("");
  show(`${field}-error`, line);
  $(field).focus();
}

function failed({ line }) {
  if (state.isSearching) return failedSearch(line);
  idle(`the simulator stopped: ${line}`);
}

// The answer of the schemes stays.
function failedSearch(line) {
  state.isSearching = false;
  show("sentence", state.sentence);
  drawPlan({ rows: [], lines: [`no plan: ${line}`] });
  idle("no plan");
}

// Charts

function layout(more) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    margin: { l: 10, r: 10, t: 5, b: 10 }, font: { size: 12, color: ink, family: "system-ui, sans-serif" },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest",
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
}

const CONFIG = { displayModeBar: false, responsive: true };

function capacityLine(capacity, direction) {
  const style = getComputedStyle(document.documentElement);
  const across = direction === "x" ? { x0: capacity, x1: capacity, y0: 0, y1: 1, yref: "paper" } : { y0: capacity, y1: capacity, x0: 0, x1: 1, xref: "paper" };
  return capacity ? [{ type: "line", line: { color: style.getPropertyValue("--bad").trim(), dash: "dash", width: 2 }, ...across }] : [];
}

function drawMemory(part) {
  state.memory = part;
  const { shown, memory, over_time: time, capacity_bytes: capacity, time_error: error } = part;
  const edge = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
  $("memory-title").textContent = `GPU memory at the peak of ${shown}, GiB; dashed: the GPU's ${gib(capacity)}`;
  const bars = memory.map((kind) => ({
    type: "bar", orientation: "h", x: [kind.bytes / GIB], y: [""], name: kind.label, marker: { color: kind.colour, line: { width: 1, color: edge } },
    hovertemplate: `${kind.label}: ${gib(kind.bytes)}<extra></extra>`, said: [`${kind.label}: ${gib(kind.bytes)}`],
  }));
  $("legend").replaceChildren(...[...memory, ...time.kinds.filter((kind) => memory.every((other) => other.kind !== kind.kind))].map((kind) => {
    const entry = Object.assign(document.createElement("li"), { textContent: kind.label });
    entry.style.setProperty("--colour", kind.colour);
    return entry;
  }));
  plot("memory-chart", bars, layout({ barmode: "stack",
    xaxis: { title: { text: "" }, rangemode: "tozero" }, yaxis: { showticklabels: false }, shapes: capacityLine(capacity / GIB, "x") }));
  $("time-title").textContent = `Memory over time of ${shown}: GiB, ms`;
  const areas = time.kinds.map((kind) => ({
    type: "scatter", mode: "lines", stackgroup: "all", line: { width: 0, shape: "hv" }, fillcolor: kind.colour, name: kind.label,
    x: [...time.time_ms, time.end_ms], y: [...kind.bytes, kind.bytes.at(-1)].map((bytes) => bytes / GIB), hovertemplate: `${kind.label}: %{y:.2f} GiB at %{x:.4g} ms<extra></extra>`,
    said: time.time_ms.map((at, number) => `${kind.label}: ${gib(kind.bytes[number])} at ${ms(at)}`),
  }));
  plot("time-chart", areas, layout({ xaxis: { range: [0, time.end_ms] }, yaxis: { rangemode: "tozero" }, shapes: capacityLine(capacity / GIB, "y") }));
  show("error-time", `Time: ${error}.`);
}

function drawSchemes() {
  const shown = state.points.filter((point) => !point.nothing);
  const bounded = shown.filter((point) => point.capacity_bytes);
  const front = [...bounded].sort((a, b) => a.time_ms - b.time_ms || a.used_bytes - b.used_bytes)
    .filter((point, at, all) => all.slice(0, at).every((other) => other.used_bytes > point.used_bytes));
  const text = (point) => `${point.scheme}${point.lossy ? " (lossy)" : ""}: ${ms(point.time_ms)} (${ms(point.time_min_ms)} to ${ms(point.time_max_ms)}), ${gib(point.used_bytes)}${point.fits ? "" : ", does not fit"}`;
  const points = (fits) => {
    const some = bounded.filter((point) => point.fits === fits);
    return { type: "scatter", mode: "markers", x: some.map((one) => one.used_bytes / GIB), y: some.map((one) => one.time_ms),
      marker: { size: 10, symbol: fits ? "circle" : "x", color: fits ? "#2e8b57" : "#c0392b" }, text: some.map(text), said: some.map(text),
      hovertemplate: "%{text}<extra></extra>", name: fits ? "fits" : "does not fit" };
  };
  const style = getComputedStyle(document.documentElement);
  plot("schemes-chart", [
    { type: "scatter", mode: "lines", x: front.map((one) => one.used_bytes / GIB), y: front.map((one) => one.time_ms), hoverinfo: "skip",
      line: { color: style.getPropertyValue("--quiet").trim(), width: 1, shape: "vh" }, name: "front" },
    points(true), points(false),
  ], layout({ xaxis: { title: { text: "GPU memory, GiB" }, rangemode: "tozero" }, yaxis: { title: { text: "ms" }, rangemode: "tozero" },
    shapes: capacityLine(bounded[0] ? bounded[0].capacity_bytes / GIB : 0, "x") }));
}

async function plot(id, data, made) {
  await Plotly.react(id, data, made, CONFIG);
  const chart = $(id);
  chart.values = data.flatMap((trace, curveNumber) => (trace.said ?? []).map((text, pointNumber) => ({ curveNumber, pointNumber, text })));
  chart.at = -1;
}

function keys(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const chart = event.currentTarget;
  if (!step || !chart.values?.length) return;
  event.preventDefault();
  chart.at = (chart.at + step + chart.values.length) % chart.values.length;
  const { curveNumber, pointNumber, text } = chart.values[chart.at];
  Plotly.Fx.hover(chart, [{ curveNumber, pointNumber }]);
  show("value", text);
}

// Files

async function download(kind) {
  const name = `buddysim-${$("model").value}-${$("machine").value}.${kind}`;
  const href = kind === "png"
    ? await Plotly.toImage($("schemes-chart"), { format: "png", width: 900, height: 500, scale: 2 })
    : URL.createObjectURL(new Blob([state.texts[kind]], { type: kind === "json" ? "application/json" : "text/plain" }));
  Object.assign(document.createElement("a"), { href, download: name }).click();
}

async function readFile(file) {
  if (!file) { state.dropped = null; return; }
  state.dropped = { [file.name.replace(/[^\w.-]/g, "_")]: await file.text() };
  ask();
}

form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
for (const field of FIELDS) $(field).addEventListener("change", () => {
  if (field === "model") { state.dropped = null; $("file").value = ""; $("config").value = ""; }
  ask();
});
$("config").addEventListener("change", () => { state.dropped = null; ask(); });
$("file").addEventListener("change", (event) => readFile(event.target.files[0]));
$("cancel").addEventListener("click", cancel);
$("share").addEventListener("click", async () => {
  await navigator.clipboard.writeText(location.href);
  show("doing", "link copied");
});
for (const button of document.querySelectorAll("[data-download]")) button.addEventListener("click", () => download(button.dataset.download));
for (const id of ["memory-chart", "schemes-chart", "time-chart"]) $(id).addEventListener("keydown", keys);
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => { event.preventDefault(); readFile(event.dataTransfer.files[0]); });
window.addEventListener("popstate", askAddress);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (state.points.length) drawSchemes();
  if (state.memory) drawMemory(state.memory);
});
fetch("errors.json").then((response) => response.json()).then(({ memory }) => show("error-memory", `Memory: ${memory}.`));
startWorker();
