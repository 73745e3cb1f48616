// Python in a thread of its own: the page never waits for it. A question is answered in parts; between two of them a
// newer question, which has a higher number, takes its place.
import { loadPyodide } from "./pyodide/pyodide.mjs";

let newest = 0;
let answers;

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
}

const ready = start().catch((error) => postMessage({ part: "failed", line: String(error.message ?? error) }));
const breath = () => new Promise((resolve) => setTimeout(resolve));

onmessage = async ({ data }) => {
  newest = data.number;
  await ready;
  await breath();
  if (data.number !== newest) return;
  const steps = answers.steps(JSON.stringify(data.question), JSON.stringify(data.files));
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
