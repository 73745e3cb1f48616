// Stores the page's files, so that it works without a network once it was loaded. With one, files come from there.
const STORED = "page";
const FILES = [
  "./", "page.css", "page.js", "worker.js", "plotly-basic.min.js", "errors.json", "python.zip", "highs.mjs", "highs.wasm.gz",
  "pyodide/pyodide.mjs", "pyodide/pyodide.asm.mjs", "pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "pyodide/pyodide-lock.json",
];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(STORED).then((stored) => stored.addAll(FILES)).then(() => skipWaiting()));
});
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET") event.respondWith(fromNetwork(event.request));
});

async function fromNetwork(request) {
  const stored = await caches.open(STORED);
  try {
    const answer = await fetch(request);
    if (answer.ok) await stored.put(request, answer.clone());
    return answer;
  } catch (error) {
    const former = await stored.match(request, { ignoreSearch: true });
    if (former) return former;
    throw error;
  }
}
