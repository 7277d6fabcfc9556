// The nodes as squares whose colour tells how full they are: a canvas, so thousands cost nothing.
const canvas = document.getElementById("map");
const resource = document.getElementById("resource");
const words = document.getElementById("map-node");
const FULLEST = "fullest resource";
const EVERY_MS = 5000;
let nodes = null;
let shares = [];
let columns = 1;
let cell = 12;
let chosen = -1;
let read = 0;

const BINARY = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];
function amount(name, counted) {
  if (name === "cpu") return String(counted / 1000);
  if (name === "memory" || name.endsWith("storage")) {
    for (const [unit, size] of BINARY) if (counted >= size) return Math.round((counted / size) * 10) / 10 + unit;
  }
  return String(counted);
}

function share(name, row) {
  const has = nodes.allocatable[name][row];
  return has ? nodes.used[name][row] / has : -1;
}

function work() {
  const name = resource.value;
  shares = nodes.names.map((_, row) =>
    name === FULLEST ? Math.max(-1, ...nodes.resources.map((each) => share(each, row))) : share(name, row),
  );
}

const colours = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim().split(/\s+/).map(Number);
  return { empty: of("--heat-0"), full: of("--heat-1"), over: of("--over"), mark: style.getPropertyValue("--front") };
};

function draw() {
  if (!nodes) return;
  const count = nodes.names.length;
  const width = canvas.clientWidth || 600;
  cell = Math.max(6, Math.min(34, Math.floor(Math.sqrt((width * 420) / Math.max(1, count)))));
  columns = Math.max(1, Math.floor(width / cell));
  const height = Math.max(cell, Math.ceil(count / columns) * cell);
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const paint = canvas.getContext("2d");
  paint.scale(ratio, ratio);
  const { empty, full, over, mark } = colours();
  const gap = cell > 9 ? 2 : 1;
  for (let row = 0; row < count; row++) {
    const left = (row % columns) * cell;
    const top = Math.floor(row / columns) * cell;
    const value = shares[row];
    if (value < 0) {
      paint.strokeStyle = `rgb(${empty.join(" ")})`;
      paint.strokeRect(left + 0.5, top + 0.5, cell - gap - 1, cell - gap - 1);
      continue;
    }
    const colour = value > 1 ? over : empty.map((part, place) => Math.round(part + (full[place] - part) * value));
    paint.fillStyle = `rgb(${colour.join(" ")})`;
    paint.fillRect(left, top, cell - gap, cell - gap);
  }
  if (chosen >= 0 && chosen < count) {
    paint.strokeStyle = mark;
    paint.lineWidth = 2;
    paint.strokeRect((chosen % columns) * cell + 1, Math.floor(chosen / columns) * cell + 1, cell - gap - 2, cell - gap - 2);
  }
  canvas.dataset.nodes = count;
}

function tell(row) {
  if (row < 0 || row >= nodes.names.length) return;
  const parts = nodes.resources
    .filter((name) => nodes.allocatable[name][row])
    .map((name) => {
      const percent = Math.round(share(name, row) * 100);
      return `${name} ${amount(name, nodes.used[name][row])}/${amount(name, nodes.allocatable[name][row])} (${percent}%)`;
    });
  words.textContent = `${nodes.names[row]}: ${parts.join(", ")}`;
  canvas.title = words.textContent;
}

function at(event) {
  const box = canvas.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left) / cell);
  const row = Math.floor((event.clientY - box.top) / cell) * columns + column;
  return column < columns && nodes && row < nodes.names.length ? row : -1;
}

function choose(row) {
  if (row === chosen) return;
  chosen = row;
  if (row >= 0) tell(row);
  draw();
}

function open(row) {
  if (row >= 0) location.assign(`/nodes/${encodeURIComponent(nodes.names[row])}`);
}

canvas.addEventListener("pointermove", (event) => choose(at(event)));
canvas.addEventListener("click", (event) => open(at(event)));
canvas.addEventListener("keydown", (event) => {
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  if (event.key === "Enter") return open(chosen);
  const last = nodes ? nodes.names.length - 1 : -1;
  let row = chosen;
  if (event.key in steps) row = chosen < 0 ? 0 : chosen + steps[event.key];
  else if (event.key === "Home") row = 0;
  else if (event.key === "End") row = last;
  else return undefined;
  event.preventDefault();
  if (row >= 0 && row <= last) choose(row);
  return undefined;
});
resource.addEventListener("change", () => {
  work();
  draw();
});
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

async function load() {
  const answer = await fetch("/api/nodes");
  if (!answer.ok) return;
  nodes = await answer.json();
  read = Date.now();
  const names = [FULLEST, ...nodes.resources];
  if (names.join("\n") !== [...resource.options].map((each) => each.value).join("\n")) {
    const before = resource.value;
    resource.replaceChildren(...names.map((name) => new Option(name, name, false, name === before)));
  }
  document.getElementById("map-section").hidden = false;
  work();
  draw();
  if (chosen >= 0) tell(chosen);
}

document.addEventListener("overview", () => {
  if (!document.hidden && Date.now() - read >= EVERY_MS) load();
});
await load();
