"use strict";
// The table of episodes: filter, sort, open one with its video. Data: {columns, first, runs, rows, videos};
// a row is [number of its run, ...values as text]; videos maps the number of a row to that of its <figure>.
const data = JSON.parse(document.getElementById("episode-data").textContent);
const byId = (id) => document.getElementById(id);
const PAGE = 100;  // rows shown at a time
let sorted = { column: -1, down: false };  // -1: as evaluated
let shown = PAGE;

const won = (text) => ["1", "1.0", "true"].includes(text.toLowerCase());
const spoken = (text) => text.replaceAll("_", " ");
const place = (name) => data.columns.indexOf(name) + 1;
const numeric = data.columns.map((_, i) => data.rows.every((row) => row[i + 1] === "" || !Number.isNaN(Number(row[i + 1]))));

function matches(row, number) {
  const chosen = (id) => (byId(id) ? byId(id).value : "");
  const text = byId("filter-text").value.trim().toLowerCase();
  const same = (name) => chosen("filter-" + name) === "" || row[place(name)] === chosen("filter-" + name);
  return (chosen("filter-run") === "" || row[0] === chosen("filter-run"))
    && (chosen("filter-success") === "" || won(row[place("success")] || "") === (chosen("filter-success") === "1"))
    && same("reason") && same("ended_in")
    && (!byId("filter-video").checked || number in data.videos)
    && (text === "" || [data.runs[row[0]], ...row.slice(1)].some((value) => value.toLowerCase().includes(text)
      || spoken(value).toLowerCase().includes(text)));
}

function compare(a, b) {
  const [x, y] = [data.rows[a][sorted.column], data.rows[b][sorted.column]];
  if (x === y || x === "" || y === "") return x === y ? a - b : (x === "" ? 1 : -1);  // what is missing comes last
  const order = sorted.column > 0 && numeric[sorted.column - 1] ? Number(x) - Number(y)
    : (sorted.column === 0 ? data.runs[x].localeCompare(data.runs[y]) : x.localeCompare(y));
  return (sorted.down ? -order : order) || a - b;
}

function visibleColumns() {
  const all = byId("all-columns").checked;
  return [0, ...data.columns.map((name, i) => [name, i + 1]).filter(([name]) => all || data.first.includes(name)).map(([, i]) => i)];
}

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function headRow(columns) {
  const row = element("tr");
  for (const column of columns) {
    const cell = element("th", undefined, column > 0 && numeric[column - 1] && data.columns[column - 1] !== "success" ? "number" : "");
    const name = column === 0 ? "evaluation" : spoken(data.columns[column - 1]);
    const button = element("button", name + (sorted.column === column ? (sorted.down ? " \u2193" : " \u2191") : ""));
    cell.scope = "col";
    cell.dataset.column = column === 0 ? "run" : data.columns[column - 1];
    if (sorted.column === column) cell.ariaSort = sorted.down ? "descending" : "ascending";
    button.type = "button";
    button.onclick = () => {
      sorted = sorted.column !== column ? { column, down: false } : sorted.down ? { column: -1, down: false } : { column, down: true };
      draw();
      byId("episode-table").querySelector(`th[data-column="${CSS.escape(cell.dataset.column)}"] button`).focus();
    };
    cell.append(button);
    row.append(cell);
  }
  row.append(element("th"));
  return row;
}

function bodyRow(number, columns) {
  const row = element("tr");
  row.dataset.row = number;
  for (const column of columns) {
    const value = data.rows[number][column];
    const name = column === 0 ? "run" : data.columns[column - 1];
    if (name === "run") row.append(element("td", data.runs[value]));
    else if (name === "success") row.append(element("td", won(value) ? "\u2713 success" : "\u2717 failure", won(value) ? "won" : "lost"));
    else row.append(element("td", numeric[column - 1] ? value : spoken(value), numeric[column - 1] ? "number" : ""));
  }
  const last = element("td");
  const button = element("button", number in data.videos ? "\u25b6 video" : "details", "link");
  button.type = "button";
  last.append(button);
  row.append(last);
  row.onclick = () => open(number);
  return row;
}

function draw() {
  const columns = visibleColumns();
  const kept = data.rows.map((_, number) => number).filter((number) => matches(data.rows[number], number));
  if (sorted.column >= 0) kept.sort(compare);
  byId("episode-table").tHead.replaceChildren(headRow(columns));
  byId("episode-table").tBodies[0].replaceChildren(...kept.slice(0, shown).map((number) => bodyRow(number, columns)));
  const successes = kept.filter((number) => won(data.rows[number][place("success")] || "")).length;
  const percent = kept.length ? ` (${(100 * successes / kept.length).toFixed(1)} %)` : "";
  byId("episode-count").textContent = `${kept.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} episodes, ${successes.toLocaleString("en")} with success${percent}`
    + (kept.length > shown ? `; the first ${shown} are shown` : "");
  byId("more").hidden = kept.length <= shown;
}

function open(number) {
  const row = data.rows[number];
  const name = place("index") ? `episode ${row[place("index")]}` : "episode";
  byId("episode-title").textContent = `${data.runs[row[0]]}, ${name}`;
  byId("episode-facts").replaceChildren(...data.columns.map((column, i) => {
    const line = element("div");
    line.append(element("dt", spoken(column)), element("dd", spoken(row[i + 1]) || "\u2013"));
    return line;
  }));
  byId("episode-video").replaceChildren();
  if (number in data.videos) {
    const source = byId(`video-${data.videos[number]}`).querySelector("video");
    const video = element("video");
    Object.assign(video, { controls: true, playsInline: true, muted: true, autoplay: true, poster: source.poster });
    prepare(video, source);
    byId("episode-video").append(video);
  }
  byId("episode").showModal();
}

// A blob can be wound in every browser; a data address cannot in some. Kept with the video of the gallery.
function prepare(video, source) {
  video.addEventListener("error", () => tellCannot(video));
  source.blob ??= fetch(source.src).then((answer) => answer.blob()).then((blob) => URL.createObjectURL(blob)).catch(() => source.src);
  source.blob.then((address) => { video.src = address; });
}

function tellCannot(video) {
  if (video.parentElement.querySelector(".cannot")) return;
  const text = element("p", "This browser does not play this video. ", "cannot");
  const link = element("a", "Save it");
  link.href = video.src;
  link.download = "episode.mp4";
  text.append(link, " to watch it elsewhere.");
  video.after(text);
}

for (const video of document.querySelectorAll(".gallery video")) {
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    prepare(video, video);
  }).observe(video);
}
for (const button of document.querySelectorAll("button[data-row]")) button.onclick = () => open(Number(button.dataset.row));
byId("episode").addEventListener("close", () => byId("episode-video").replaceChildren());
byId("episode").addEventListener("click", (event) => { if (event.target === byId("episode")) byId("episode").close(); });
if (byId("filters")) {
  const anew = () => { shown = PAGE; draw(); };
  byId("filters").addEventListener("input", anew);
  byId("filters").addEventListener("reset", () => { sorted = { column: -1, down: false }; setTimeout(anew); });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("more").onclick = () => { shown += PAGE; draw(); };
  draw();
}
