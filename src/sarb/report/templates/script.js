document.querySelectorAll("table.sortable").forEach(function (table) {
  var heads = Array.from(table.querySelectorAll("th"));
  heads.forEach(function (head, column) {
    head.querySelector("button").addEventListener("click", function () {
      var value = function (row) {
        var cell = row.cells[column], number = parseFloat(cell.dataset.value);
        return cell.dataset.value === undefined ? cell.textContent.toLowerCase() : number;
      };
      var rows = Array.from(table.tBodies[0].rows);
      var numeric = rows.some(function (row) { return typeof value(row) === "number"; });
      var sorted = head.getAttribute("aria-sort");
      var descending = sorted ? sorted === "ascending" : numeric;
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      rows.sort(function (a, b) {
        var x = value(a), y = value(b);
        if (numeric && typeof x !== "number") { return 1; }
        if (numeric && typeof y !== "number") { return -1; }
        return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
      });
      rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    });
  });
});
// A part that scrolls must be reachable with the Tab key.
function reachScrolling() {
  document.querySelectorAll(".scroll").forEach(function (part) {
    var scrolls = part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight;
    if (scrolls) { part.tabIndex = 0; } else { part.removeAttribute("tabindex"); }
  });
}
addEventListener("load", reachScrolling);
addEventListener("resize", reachScrolling);
