#include "benchmark/report/page.h"

namespace sdx::benchmark {

// Colours are variables, so that one set of rules serves light and dark. The series colours keep their order in both and stay
// apart for readers with colour vision deficiencies.
const char* const kReportStyle = R"css(
:root{color-scheme:light;--page:#f6f6f3;--card:#fff;--ink:#151513;--soft:#55544f;--mute:#85837b;--line:#e3e2dc;--grid:#ecebe6;
--warn:#8a5a00;--warnbg:#fdf4de;--bad:#b3261e;
--s0:#2a78d6;--s1:#eb6834;--s2:#1baf7a;--s3:#c98a00;--s4:#d9608f;--s5:#008300;--s6:#4a3aa7;--s7:#c23b3a}
:root.dark{color-scheme:dark;--page:#121211;--card:#1c1c1a;--ink:#f4f3ee;--soft:#c1bfb6;--mute:#8d8b83;--line:#33322f;--grid:#2a2a27;
--warn:#f0c36d;--warnbg:#2d2512;--bad:#ff8a80;
--s0:#4a94ea;--s1:#e5703c;--s2:#2bb386;--s3:#d39a17;--s4:#df6f9b;--s5:#4fae3d;--s6:#9085e9;--s7:#ea7372}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}
header{display:flex;gap:16px;align-items:flex-start;justify-content:space-between;margin-bottom:20px}
h1{font-size:22px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:15px;margin:0}
p{margin:0}.soft{color:var(--soft)}.mute{color:var(--mute);font-size:12.5px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;margin-bottom:16px}
.head{display:flex;flex-wrap:wrap;gap:8px 16px;align-items:center;justify-content:space-between;margin-bottom:10px}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:16px}.two .card{margin:0}.two{margin-bottom:16px}
@media(max-width:520px){.two{grid-template-columns:1fr}}
button{font:inherit;font-size:12.5px;color:var(--soft);background:none;border:1px solid var(--line);border-radius:6px;padding:3px 10px;cursor:pointer}
button[aria-pressed=true]{color:var(--ink);border-color:var(--mute);font-weight:600}
button:focus-visible,th:focus-visible{outline:2px solid var(--s0);outline-offset:1px}
.tabs{display:flex;gap:6px;align-items:center}
.legend{display:flex;flex-wrap:wrap;gap:6px;margin-bottom:16px}
.legend button{display:flex;align-items:center;gap:7px}.legend i{width:10px;height:10px;border-radius:3px;display:inline-block}
.legend button[aria-pressed=false]{opacity:.45;text-decoration:line-through}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:5px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:600;font-size:12.5px;cursor:pointer;user-select:none}
th:first-child,td:first-child,.text{text-align:left}
tr:last-child td{border-bottom:0}
th[aria-sort=ascending]::after{content:" ↑"}th[aria-sort=descending]::after{content:" ↓"}
summary{cursor:pointer;font-weight:600;font-size:15px}details[open] summary{margin-bottom:10px}
.note{background:var(--warnbg);color:var(--warn);border-radius:8px;padding:8px 12px;margin-bottom:8px}
.error{color:var(--bad)}.light{background:none;color:var(--soft);padding:2px 0;margin:0}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{fill:var(--soft);font-size:12px}svg .axis{stroke:var(--line)}svg .grid{stroke:var(--grid)}svg .title{fill:var(--mute)}
#tip{position:fixed;pointer-events:none;background:var(--card);color:var(--ink);border:1px solid var(--mute);border-radius:7px;
padding:6px 10px;font-size:12.5px;display:none;z-index:9;max-width:340px;box-shadow:0 4px 14px rgb(0 0 0/.18)}
#tip b{display:block}
/* Drawings shrink with the screen; their text must stay legible. */
@media(max-width:900px){svg text{font-size:18px}}
@media(max-width:640px){main{padding:16px 10px 40px}.card{padding:12px 10px}svg text{font-size:26px}}
@media print{button{display:none}.card{break-inside:avoid}}
)css";

const char* const kReportScript = R"js(
'use strict';
const run = JSON.parse(document.getElementById('data').textContent);
const all = run.results.filter(r => !r.error && r.latencies_ms.length);
const hidden = new Set();
const root = document.documentElement;
const $ = id => document.getElementById(id);
const esc = s => String(s).replace(/[&<>"']/g, c => '&#' + c.charCodeAt(0) + ';');
const color = i => `var(--s${i % 8})`;
const shown = () => all.map((r, i) => ({r, i})).filter(s => !hidden.has(s.i));
const fmt = v => {
  if (!isFinite(v)) return '–';
  const a = Math.abs(v);
  if (a === 0) return '0';
  if (a >= 1000) return Math.round(v).toLocaleString('en');
  return v.toFixed(Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(a)) - 1 + (a < 1 ? 0 : 0))));
};
const quantile = (sorted, q) => {
  const at = q * (sorted.length - 1), low = Math.floor(at), high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
};
// The longest time that a plot shows unless all are wanted: runs that something else on the machine disturbed would spoil the
// scale.
const usual = r => Math.min(quantile(r.sorted, 0.99), quantile(r.sorted, 0.75) + 6 * (quantile(r.sorted, 0.75) - quantile(r.sorted, 0.25)));
all.forEach(r => { r.sorted = Float64Array.from(r.latencies_ms).sort(); });

// Round values between low and high, about n of them.
function ticks(low, high, n) {
  if (!(high > low)) return [low];
  const raw = (high - low) / n, ten = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map(f => f * ten).find(s => s >= raw);
  const out = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return out;
}
const trim = v => String(+v.toPrecision(6));

// A plane with axes. `draw` gets the functions from values to places and returns SVG.
function plane(o, draw) {
  const narrow = innerWidth < 640;  // fewer and larger labels
  const w = narrow ? 760 : o.width || 1080, h = o.height || 300, left = narrow ? 96 : 58, right = 14, top = narrow ? 36 : 22, bottom = narrow ? 66 : 40;
  const X = v => left + (v - o.x[0]) / (o.x[1] - o.x[0] || 1) * (w - left - right);
  const Y = v => h - bottom - (v - o.y[0]) / (o.y[1] - o.y[0] || 1) * (h - top - bottom);
  let s = `<svg viewBox="0 0 ${w} ${h}" role="img" aria-label="${esc(o.title)}">`;
  for (const t of ticks(o.y[0], o.y[1], 5))
    s += `<line class="grid" x1="${left}" x2="${w - right}" y1="${Y(t)}" y2="${Y(t)}"/><text x="${left - 8}" y="${Y(t) + 4}" text-anchor="end">${trim(t)}</text>`;
  for (const t of o.xticks || ticks(o.x[0], o.x[1], narrow ? 4 : w > 700 ? 10 : 6))
    s += `<line class="axis" x1="${X(t)}" x2="${X(t)}" y1="${h - bottom}" y2="${h - bottom + 4}"/><text x="${X(t)}" y="${h - bottom + (narrow ? 28 : 18)}" text-anchor="middle">${trim(t)}</text>`;
  s += `<line class="axis" x1="${left}" x2="${w - right}" y1="${h - bottom}" y2="${h - bottom}"/>`;
  s += `<text class="title" x="${w - right}" y="${h - 6}" text-anchor="end">${esc(o.xlabel)}</text>`;
  s += `<text class="title" x="${left}" y="${top - 10}">${esc(o.ylabel)}</text>`;
  return s + draw(X, Y) + '</svg>';
}

// Shows what `find(x, y)` (in the drawing's units) says about the place under the pointer.
const tip = $('tip');
function hover(box, find) {
  const svg = box.querySelector('svg');
  if (!svg) return;
  svg.onpointermove = e => {
    const m = svg.getScreenCTM(), x = (e.clientX - m.e) / m.a, y = (e.clientY - m.f) / m.d, text = find(x, y);
    tip.style.display = text ? 'block' : 'none';
    if (!text) return;
    tip.innerHTML = text;
    const wide = tip.offsetWidth, high = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(innerWidth - wide - 8, e.clientX + 14)) + 'px';
    tip.style.top = (e.clientY + high + 24 > innerHeight ? e.clientY - high - 12 : e.clientY + 16) + 'px';
  };
  svg.onpointerleave = () => { tip.style.display = 'none'; };
}
const none = '<p class="mute">nothing is selected</p>';

// Medians with their confidence intervals.
function medians() {
  const list = shown(), box = $('medians');
  if (!list.length) { box.innerHTML = none; return; }
  const row = 34, w = 520, left = Math.min(220, 24 + 7 * Math.max(...list.map(s => s.r.label.length))), right = 92;
  const h = list.length * row + 44, top = Math.max(...list.map(s => s.r.median_ci95_ms?.[1] || s.r.median_ms)) * 1.04;
  const X = v => left + v / top * (w - left - right);
  let s = `<svg viewBox="0 0 ${w} ${h}" role="img" aria-label="medians">`;
  for (const t of ticks(0, top, 4))
    s += `<line class="grid" x1="${X(t)}" x2="${X(t)}" y1="0" y2="${h - 40}"/><text x="${X(t)}" y="${h - 24}" text-anchor="middle">${trim(t)}</text>`;
  list.forEach(({r, i}, k) => {
    const y = k * row + 6, c = y + 11, [lo, hi] = r.median_ci95_ms ?? [0, 0];
    const name = r.label.length * 7 + 24 > 220 ? r.label.slice(0, 27) + '…' : r.label;
    s += `<text x="${left - 8}" y="${c + 4}" text-anchor="end" style="fill:var(--ink)">${esc(name)}</text>`;
    s += `<rect x="${left}" y="${y}" width="${Math.max(1, X(r.median_ms) - left)}" height="22" rx="3" fill="${color(i)}"/>`;
    if (r.median_ci95_ms) s += `<path d="M${X(lo)} ${c}H${X(hi)}M${X(lo)} ${c - 5}v10M${X(hi)} ${c - 5}v10" stroke="var(--ink)" stroke-width="1.5" fill="none"/>`;
    s += `<text x="${X(Math.max(hi, r.median_ms)) + 8}" y="${c + 4}">${fmt(r.median_ms)} ms</text>`;
  });
  box.innerHTML = s + `<text class="title" x="${w - right}" y="${h - 6}" text-anchor="end">ms, with 95 % confidence</text></svg>`;
  hover(box, (x, y) => {
    const at = list[Math.floor(y / row)];
    if (!at || x < 0) return '';
    const r = at.r;
    return `<b>${esc(r.label)}</b>median ${fmt(r.median_ms)} ms${r.median_ci95_ms ? ` (${fmt(r.median_ci95_ms[0])} to ${fmt(r.median_ci95_ms[1])})` : ''}<br>p90 ${fmt(r.p90_ms)}, p99 ${fmt(r.p99_ms)} ms<br>${fmt(r.throughput)} samples/s`;
  });
}

// Distribution: histogram, or share of runs that are no slower.
let shape = 'histogram';
function distribution() {
  const list = shown(), box = $('distribution');
  if (!list.length) { box.innerHTML = none; return; }
  const low = Math.min(...list.map(s => s.r.sorted[0]));
  let high = Math.max(...list.map(s => usual(s.r)));
  if (!(high > low)) high = low * 1.01 + 1e-6;
  const pad = (high - low) * 0.02, x = [Math.max(0, low - pad), high + pad];
  const o = {x, width: 520, height: 280, xlabel: 'ms', title: 'distribution of times'};
  if (shape === 'histogram') {
    const bins = Math.max(8, Math.min(40, Math.ceil(2 * Math.cbrt(Math.max(...list.map(s => s.r.sorted.length))))));
    const width = (x[1] - x[0]) / bins;
    const counts = list.map(({r}) => {
      const n = new Array(bins).fill(0);
      for (const v of r.sorted) if (v <= x[1]) ++n[Math.min(bins - 1, Math.floor((v - x[0]) / width))];
      return n.map(c => 100 * c / r.sorted.length);
    });
    o.y = [0, Math.max(...counts.flat()) * 1.05];
    o.ylabel = '% of runs';
    box.innerHTML = plane(o, (X, Y) => list.map(({i}, k) => {
      let line = `M${X(x[0])} ${Y(0)}`;
      counts[k].forEach((c, b) => { line += `V${Y(c)}H${X(x[0] + (b + 1) * width)}`; });
      return `<path d="${line}V${Y(0)}" fill="${color(i)}" fill-opacity=".18" stroke="${color(i)}" stroke-width="1.5"/>`;
    }).join(''));
    hover(box, px => {
      const b = Math.floor(((px - 58) / (520 - 72)) * bins);
      if (b < 0 || b >= bins) return '';
      return `<b>${fmt(x[0] + b * width)} to ${fmt(x[0] + (b + 1) * width)} ms</b>` + list.map(({r}, k) => `${esc(r.label)}: ${counts[k][b].toFixed(1)} %`).join('<br>');
    });
    return;
  }
  o.y = [0, 100];
  o.ylabel = '% of runs that are no slower';
  box.innerHTML = plane(o, (X, Y) => list.map(({r, i}) => {
    const n = r.sorted.length, step = Math.max(1, Math.floor(n / 400));
    let line = '';
    for (let k = 0; k < n; k += step) if (r.sorted[k] <= x[1]) line += `${line ? 'L' : 'M'}${X(r.sorted[k])} ${Y(100 * (k + 1) / n)}`;
    return `<path d="${line}" fill="none" stroke="${color(i)}" stroke-width="2"/>`;
  }).join(''));
  hover(box, px => {
    const v = x[0] + (px - 58) / (520 - 72) * (x[1] - x[0]);
    if (v < x[0] || v > x[1]) return '';
    return `<b>${fmt(v)} ms</b>` + list.map(({r}) => {
      let n = 0;
      while (n < r.sorted.length && r.sorted[n] <= v) ++n;
      return `${esc(r.label)}: ${(100 * n / r.sorted.length).toFixed(1)} %`;
    }).join('<br>');
  });
}

// Every run over time. Where there are many, groups of neighbours: their median, and a line from fastest to slowest.
let cut = true;
function course() {
  const list = shown(), box = $('course');
  if (!list.length) { box.innerHTML = none; return; }
  const most = 1500, points = [];
  for (const {r, i} of list) {
    const n = r.latencies_ms.length, group = Math.ceil(n / most);
    for (let k = 0; k < n; k += group) {
      const part = Float64Array.from(r.latencies_ms.slice(k, k + group)).sort();
      points.push({i, n: part.length, at: k, t: r.t_ms.length ? r.t_ms[k] / 1000 : k, v: quantile(part, 0.5), low: part[0], high: part[part.length - 1]});
    }
  }
  const timed = list.every(s => s.r.t_ms.length);
  const start = Math.min(...points.map(p => p.t)), end = Math.max(...points.map(p => p.t));
  let top = Math.max(...points.map(p => p.high));
  const limit = Math.max(...list.map(s => usual(s.r))) * 1.15;
  const beyond = points.filter(p => p.high > limit).length;
  if (cut && top > limit) top = limit;
  const o = {x: [start, end > start ? end : start + 1], y: [0, top * 1.03], xlabel: timed ? 'seconds since the benchmark began' : 'run', ylabel: 'ms', title: 'times in the order measured'};
  let places;
  box.innerHTML = plane(o, (X, Y) => {
    places = points.map(p => ({p, x: X(p.t), y: Y(Math.min(p.v, top))}));
    return places.map(({p, x, y}) => (p.n > 1 ? `<path d="M${x} ${Y(Math.min(p.high, top))}V${Y(p.low)}" stroke="${color(p.i)}" stroke-opacity=".35"/>` : '') +
      (p.v > top ? `<path d="M${x - 4} ${y + 7}L${x} ${y}L${x + 4} ${y + 7}Z" fill="${color(p.i)}"/>` : `<circle cx="${x}" cy="${y}" r="2.6" fill="${color(p.i)}" fill-opacity=".75"/>`)).join('');
  });
  $('beyond').textContent = cut && beyond ? `${beyond} above the upper edge are shown as triangles` : '';
  hover(box, (px, py) => {
    let best = null, near = 400;
    for (const q of places) {
      const d = (q.x - px) ** 2 + (q.y - py) ** 2;
      if (d < near) { near = d; best = q.p; }
    }
    if (!best) return '';
    const r = all[best.i];
    return `<b>${esc(r.label)}</b>` + (best.n > 1 ? `runs ${best.at} to ${best.at + best.n - 1}: median ${fmt(best.v)} ms (${fmt(best.low)} to ${fmt(best.high)})` : `run ${best.at}: ${fmt(best.v)} ms`);
  });
}

// Samples a second over the batch size, where there are several.
function batches() {
  const box = $('batches');
  if (!box) return;
  const list = shown();
  if (!list.length) { box.innerHTML = none; return; }
  const lines = new Map();
  for (const {r, i} of list) {
    const key = r.label.replace(/, batch [0-9]+/, '');
    if (!lines.has(key)) lines.set(key, {i: lines.size, points: []});
    lines.get(key).points.push(r);
  }
  const sizes = [...new Set(list.map(s => s.r.batch_size))].sort((a, b) => a - b);
  const X2 = v => Math.log2(v);
  const o = {x: [X2(sizes[0]), X2(sizes[sizes.length - 1])], y: [0, Math.max(...list.map(s => s.r.throughput)) * 1.08], xticks: [], xlabel: 'batch size', ylabel: 'samples/s', title: 'throughput over batch size', height: 280};
  const places = [];
  box.innerHTML = plane(o, (X, Y) => sizes.map(n => `<text x="${X(X2(n))}" y="258" text-anchor="middle">${n}</text>`).join('') +
    [...lines].map(([name, l], k) => {
      l.points.sort((a, b) => a.batch_size - b.batch_size);
      const at = l.points.map(r => { const q = {x: X(X2(r.batch_size)), y: Y(r.throughput), r}; places.push(q); return q; });
      return `<path d="M${at.map(q => q.x + ' ' + q.y).join('L')}" fill="none" stroke="${color(k)}" stroke-width="2"/>` +
        at.map(q => `<circle cx="${q.x}" cy="${q.y}" r="4" fill="${color(k)}" stroke="var(--card)" stroke-width="2"/>`).join('') +
        (lines.size > 1 ? `<text x="${at[at.length - 1].x - 6}" y="${at[at.length - 1].y - 9}" text-anchor="end" style="fill:${color(k)}">${esc(name)}</text>` : '');
    }).join(''));
  hover(box, (px, py) => {
    const q = places.reduce((a, b) => !a || (b.x - px) ** 2 + (b.y - py) ** 2 < (a.x - px) ** 2 + (a.y - py) ** 2 ? b : a, null);
    return q ? `<b>${esc(q.r.label)}</b>${fmt(q.r.throughput)} samples/s<br>median ${fmt(q.r.median_ms)} ms` : '';
  });
}

function draw() { medians(); distribution(); course(); batches(); }

function choose(name, current, set) {
  document.querySelectorAll(`[data-choice=${name}]`).forEach(b => {
    b.setAttribute('aria-pressed', b.value === current);
    b.onclick = () => { set(b.value); choose(name, b.value, set); };
  });
}

// Tables sort by a click on a heading.
function sortable(table) {
  const head = [...table.tHead.rows[0].cells];
  const value = cell => {
    const text = cell.textContent.trim(), n = parseFloat(text.replace(/[±,]/g, ''));
    return isNaN(n) || cell.classList.contains('text') ? text : n;
  };
  head.forEach((th, c) => {
    th.tabIndex = 0;
    const sort = () => {
      const up = th.getAttribute('aria-sort') !== 'ascending';
      head.forEach(h => h.removeAttribute('aria-sort'));
      th.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const x = value(a.cells[c]), y = value(b.cells[c]);
        const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows);
    };
    th.onclick = sort;
    th.onkeydown = e => { if (e.key === 'Enter') sort(); };
  });
}

function theme(dark) {
  root.classList.toggle('dark', dark);
  $('theme').textContent = dark ? 'Light' : 'Dark';
}
const wish = matchMedia('(prefers-color-scheme: dark)');
theme(wish.matches);
wish.addEventListener('change', e => theme(e.matches));
$('theme').onclick = () => theme(!root.classList.contains('dark'));

$('legend').innerHTML = all.length < 2 ? '' : all.map((r, i) => `<button aria-pressed="true" value="${i}"><i style="background:${color(i)}"></i>${esc(r.label)}</button>`).join('');
document.querySelectorAll('#legend button').forEach(b => {
  b.onclick = () => {
    const i = +b.value;
    if (hidden.has(i)) hidden.delete(i); else hidden.add(i);
    b.setAttribute('aria-pressed', !hidden.has(i));
    draw();
  };
});
choose('shape', shape, v => { shape = v; distribution(); });
choose('cut', 'cut', v => { cut = v === 'cut'; course(); });
document.querySelectorAll('table').forEach(sortable);
document.querySelectorAll('.plots').forEach(p => { p.hidden = !all.length; });
if (all.length) draw();
)js";

}  // namespace sdx::benchmark
