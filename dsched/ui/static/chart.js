// Attempts per second as lines; the points come from /api/throughput, then one with each event.
const SPAN_MS = 15 * 60 * 1000;
const HEIGHT = 180;
const LEFT = 46;
const BOTTOM = 20;
const TOP = 8;
const NAMES = ["scheduled", "unschedulable", "error"];
const figure = document.getElementById("throughput");
let points = [];

function element(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function nice(most) {
  if (most <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= most);
}

function draw() {
  const width = Math.max(300, figure.clientWidth);
  const now = points.length ? points[points.length - 1].at_ms : Date.now();
  const from = Math.max(now - SPAN_MS, points.length ? points[0].at_ms : now - SPAN_MS);
  const span = Math.max(60_000, now - from);
  const most = nice(Math.max(0, ...points.flatMap((point) => NAMES.map((name) => point.rates[name] || 0))));
  const x = (at) => LEFT + ((at - (now - span)) / span) * (width - LEFT - 8);
  const y = (rate) => HEIGHT - BOTTOM - (rate / most) * (HEIGHT - BOTTOM - TOP);
  const latest = points.length ? points[points.length - 1].rates : {};
  const told = NAMES.map((name) => `${name} ${(latest[name] || 0).toLocaleString("en")}`).join(", ");
  const svg = element("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Attempts per second: ${told}` });
  for (const share of [0, 0.5, 1]) {
    svg.append(element("line", { class: "axis", x1: LEFT, x2: width - 8, y1: y(share * most), y2: y(share * most) }));
    svg.append(element("text", { x: LEFT - 6, y: y(share * most) + 4, "text-anchor": "end" }, (share * most).toLocaleString("en")));
  }
  svg.append(element("text", { x: LEFT, y: HEIGHT - 4 }, `${Math.round(span / 60_000)} min ago`));
  svg.append(element("text", { x: width - 8, y: HEIGHT - 4, "text-anchor": "end" }, "now"));
  NAMES.forEach((name, place) => {
    const line = points.map((point) => `${x(point.at_ms).toFixed(1)},${y(point.rates[name] || 0).toFixed(1)}`).join(" ");
    svg.append(element("polyline", { class: `series series-${place + 1}`, points: line }));
  });
  const caption = document.createElement("figcaption");
  NAMES.forEach((name, place) => {
    const key = document.createElement("span");
    key.className = `key key-${place + 1}`;
    key.textContent = `${name} ${(latest[name] || 0).toLocaleString("en")}/s`;
    caption.append(key);
  });
  figure.replaceChildren(svg, caption);
  figure.dataset.points = points.length;
}

document.addEventListener("overview", (event) => {
  const point = event.detail.latest;
  if (!point || (points.length && point.at_ms <= points[points.length - 1].at_ms)) return;
  points.push(point);
  points = points.filter((each) => each.at_ms >= point.at_ms - SPAN_MS);
  draw();
});

addEventListener("resize", draw);

const answer = await fetch("/api/throughput");
if (answer.ok) points = await answer.json();
draw();
