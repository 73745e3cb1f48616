"use strict";
// A click on a head sorts its table by that column, a second one the other way. Numbers sort by value, empty cells last.
function keyOf(cell) {
  if (cell.classList.contains("none")) return null;
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}
function sortBy(head) {
  const body = head.closest("table").tBodies[0];
  const ascending = head.getAttribute("aria-sort") !== "ascending";
  const rows = Array.from(body.rows, (row) => [keyOf(row.cells[head.cellIndex]), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return ascending ? order : -order;
  });
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  body.append(...rows.map(([, row]) => row));
}
for (const head of document.querySelectorAll("th")) {
  head.addEventListener("click", () => sortBy(head));
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sortBy(head); });
}
// Charts in a part that was closed get their width when it opens.
for (const part of document.querySelectorAll("details")) {
  part.addEventListener("toggle", () => {
    for (const chart of part.querySelectorAll(".js-plotly-plot")) Plotly.Plots.resize(chart);
  });
}
