// Keeps the page's files, so that it works without a network once it was loaded. With one, files come from there.
const KEPT = "page";
const FILES = [
  "./", "page.css", "page.js", "worker.js", "plotly-basic.min.js", "errors.json", "python.zip", "highs.mjs", "highs.wasm.gz",
  "pyodide/pyodide.mjs", "pyodide/pyodide.asm.mjs", "pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "pyodide/pyodide-lock.json",
];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(FILES)).then(() => skipWaiting()));
});
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET") event.respondWith(fromNetwork(event.request));
});

async function fromNetwork(request) {
  const kept = await caches.open(KEPT);
  try {
    const answer = await fetch(request);
    if (answer.ok) await kept.put(request, answer.clone());
    return answer;
  } catch (error) {
    const former = await kept.match(request, { ignoreSearch: true });
    if (former) return former;
    throw error;
  }
}
