document.querySelectorAll("table.sortable th").forEach((head) => {
  head.tabIndex = 0;
  const sort = () => {
    const body = head.closest("table").tBodies[0];
    const column = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (isNaN(x) || isNaN(y) ? String(x).localeCompare(y) : x - y) * (up ? 1 : -1);
    });
    head.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
});
