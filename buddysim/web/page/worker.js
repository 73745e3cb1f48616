// Python in a thread of its own: the page never waits for it. A question is answered in parts; between two of them a
// newer question, which has a higher number, replaces it.
import { loadPyodide } from "./pyodide/pyodide.mjs";

let newest = 0;
let answers;
let solving;

async function start() {
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  const bundle = await fetch(new URL("./python.zip", import.meta.url));
  python.unpackArchive(await bundle.arrayBuffer(), "zip", { extractDir: "/lib/python" });
  answers = python.runPython(`
import sys
sys.path.insert(0, "/lib/python")
from buddysim.browser import entry
entry`);
  postMessage({ part: "ready", choices: JSON.parse(answers.choices_text()) });
  solver().catch(() => {}); // now, as there may be no network later; a search tries again
}

// HiGHS's number of a model status.
const INFEASIBLE = 8;

// HiGHS solves the integer programs of a search.
function solver() {
  solving ??= loadSolver().catch((error) => {
    solving = undefined;
    throw error;
  });
  return solving;
}

async function loadSolver() {
  const { default: load } = await import("./highs.mjs");
  const packed = await fetch(new URL("./highs.wasm.gz", import.meta.url));
  const bytes = await new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/wasm" }));
  const highs = await load({ locateFile: () => address });
  return (text, nodes, gap) => highs.withModel({ format: "lp", data: text }, (model) => {
    model.options.set({ output_flag: false, mip_max_nodes: nodes, mip_rel_gap: gap });
    model.run();
    if (model.getModelStatus() === INFEASIBLE) return JSON.stringify({ values: null, bound: null });
    const bound = model.info.get("mip_dual_bound");
    const { colValue: solved } = model.getSolution();
    const values = solved?.length ? Object.fromEntries(Array.from(solved, (value, column) => [model.getColName(column), value])) : null;
    return JSON.stringify({ values, bound: Number.isFinite(bound) ? bound : null });
  });
}

const ready = start().catch((error) => postMessage({ part: "failed", line: String(error.message ?? error) }));
const breath = () => new Promise((resolve) => setTimeout(resolve));

onmessage = async ({ data }) => {
  newest = data.number;
  await ready;
  await breath();
  if (data.number !== newest) return;
  let runHighs;
  try {
    if (data.question.command === "fit") runHighs = await solver();
  } catch (error) {
    postMessage({ part: "failed", number: data.number, line: `the solver is not loaded: ${error.message}` });
    return;
  }
  if (data.number !== newest) return;
  const report = (text) => postMessage({ ...JSON.parse(text), number: data.number });
  const steps = answers.steps(JSON.stringify(data.question), JSON.stringify(data.files), report, runHighs);
  for (;;) {
    if (data.number !== newest) break;
    let text;
    try {
      text = steps.next_text();
    } catch (error) {
      text = JSON.stringify({ part: "failed", line: String(error.message).trim().split("\n").pop() });
    }
    if (text === undefined || text === null) break;
    const part = JSON.parse(text);
    postMessage({ ...part, number: data.number });
    if (part.part === "failed") break;
    await breath();
  }
  steps.destroy();
};
