#include "train/loop/report_page.h"

namespace sdx::train::loop {

const char* const kReportStyle = R"css(
:root{color-scheme:light;--page:#f6f6f3;--card:#fff;--ink:#151513;--soft:#55544f;--mute:#85837b;--line:#e3e2dc;--grid:#ecebe6;
--warn:#8a5a00;--warnbg:#fdf4de;--s0:#2a78d6;--s1:#eb6834}
:root.dark{color-scheme:dark;--page:#121211;--card:#1c1c1a;--ink:#f4f3ee;--soft:#c1bfb6;--mute:#8d8b83;--line:#33322f;--grid:#2a2a27;
--warn:#f0c36d;--warnbg:#2d2512;--s0:#4a94ea;--s1:#e5703c}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}
header{display:flex;gap:16px;align-items:flex-start;justify-content:space-between;margin-bottom:20px}
h1{font-size:22px;line-height:1.25;margin:0;overflow-wrap:anywhere}h2{font-size:15px;margin:0 0 10px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;margin-bottom:16px}
button{font:inherit;font-size:12.5px;color:var(--soft);background:none;border:1px solid var(--line);border-radius:6px;padding:3px 10px;cursor:pointer}
button:focus-visible{outline:2px solid var(--s0);outline-offset:1px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.note{background:var(--warnbg);color:var(--warn);border-radius:8px;padding:8px 12px;margin-bottom:8px}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:5px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:600;font-size:12.5px}th:first-child,td:first-child{text-align:left}
tr:last-child td{border-bottom:0}tr.best td:nth-child(4){font-weight:600}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{fill:var(--soft);font-size:12px}svg .axis{stroke:var(--line)}svg .grid{stroke:var(--grid)}svg .title{fill:var(--mute)}
#tip{position:fixed;pointer-events:none;background:var(--card);color:var(--ink);border:1px solid var(--mute);border-radius:7px;
padding:6px 10px;font-size:12.5px;display:none;z-index:9}
@media print{button{display:none}.card{break-inside:avoid}}
)css";

const char* const kReportScript = R"js(
'use strict';
const run = JSON.parse(document.getElementById('data').textContent);
const root = document.documentElement;
const $ = id => document.getElementById(id);
const known = v => v !== null && isFinite(v);
function ticks(low, high, n) {
  if (!(high > low)) return [low];
  const raw = (high - low) / n, ten = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map(f => f * ten).find(s => s >= raw);
  const out = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return out;
}
const trim = v => String(+v.toPrecision(6));
const tip = $('tip');

// Lines over epochs: {name, color, points: [[x, y]], dots}.
function plot(box, lines, ylabel, show) {
  lines = lines.map(l => ({...l, points: l.points.filter(p => known(p[1]))})).filter(l => l.points.length);
  if (!lines.length) return false;
  const all = lines.flatMap(l => l.points), w = 1080, h = 300, left = 58, right = 14, top = 24, bottom = 40;
  const xs = all.map(p => p[0]), ys = all.map(p => p[1]);
  const x = [0, Math.max(...xs, 1)];
  let y = [Math.min(...ys), Math.max(...ys)];
  if (!(y[1] > y[0])) y = [y[0] - 0.5, y[0] + 0.5];
  const X = v => left + (v - x[0]) / (x[1] - x[0]) * (w - left - right);
  const Y = v => h - bottom - (v - y[0]) / (y[1] - y[0]) * (h - top - bottom);
  let s = `<svg viewBox="0 0 ${w} ${h}" role="img" aria-label="${ylabel}">`;
  for (const t of ticks(y[0], y[1], 5))
    s += `<line class="grid" x1="${left}" x2="${w - right}" y1="${Y(t)}" y2="${Y(t)}"/><text x="${left - 8}" y="${Y(t) + 4}" text-anchor="end">${trim(t)}</text>`;
  for (const t of ticks(x[0], x[1], 10))
    s += `<line class="axis" x1="${X(t)}" x2="${X(t)}" y1="${h - bottom}" y2="${h - bottom + 4}"/><text x="${X(t)}" y="${h - bottom + 18}" text-anchor="middle">${trim(t)}</text>`;
  s += `<line class="axis" x1="${left}" x2="${w - right}" y1="${h - bottom}" y2="${h - bottom}"/><text class="title" x="${w - right}" y="${h - 6}" text-anchor="end">epochs</text>`;
  let at = left;
  for (const l of lines) {
    const path = l.points.map(p => X(p[0]).toFixed(1) + ' ' + Y(p[1]).toFixed(1)).join('L');
    s += `<path d="M${path}" fill="none" stroke="${l.color}" stroke-width="${l.thin ? 1 : 2}" stroke-opacity="${l.thin ? 0.45 : 1}"/>`;
    if (!l.thin) s += l.points.map(p => `<circle cx="${X(p[0])}" cy="${Y(p[1])}" r="3" fill="${l.color}"/>`).join('');
    s += `<rect x="${at}" y="2" width="10" height="10" rx="3" fill="${l.color}" fill-opacity="${l.thin ? 0.45 : 1}"/><text x="${at + 16}" y="12">${l.name}</text>`;
    at += 30 + 7 * l.name.length;
  }
  box.innerHTML = s + '</svg>';
  const svg = box.firstChild;
  svg.onpointermove = e => {
    const m = svg.getScreenCTM(), px = (e.clientX - m.e) / m.a, v = x[0] + (px - left) / (w - left - right) * (x[1] - x[0]);
    const text = lines.map(l => {
      const p = l.points.reduce((a, b) => Math.abs(b[0] - v) < Math.abs(a[0] - v) ? b : a);
      return `${l.name}: ${show(p[1])} (at ${trim(+p[0].toFixed(2))})`;
    }).join('<br>');
    tip.style.display = 'block';
    tip.innerHTML = text;
    tip.style.left = Math.max(4, Math.min(innerWidth - tip.offsetWidth - 8, e.clientX + 14)) + 'px';
    tip.style.top = (e.clientY + tip.offsetHeight + 24 > innerHeight ? e.clientY - tip.offsetHeight - 12 : e.clientY + 16) + 'px';
  };
  svg.onpointerleave = () => { tip.style.display = 'none'; };
  return true;
}

const per = Math.max(1, run.batches_per_epoch);
const batches = run.losses.map((v, i) => [(i + 1) * run.batches_each / per, v]);
const over = key => run.epochs.map((e, i) => [i + 1, e[key]]);
plot($('loss'), [{name: 'batches', color: 'var(--s0)', thin: true, points: batches},
                 {name: 'training', color: 'var(--s0)', points: over('loss')},
                 {name: 'validation', color: 'var(--s1)', points: over('validation_loss')}], 'loss', v => String(+v.toPrecision(4)));
$('accuracies').hidden = !plot($('accuracy'), [{name: 'training', color: 'var(--s0)', points: over('accuracy')},
                 {name: 'validation', color: 'var(--s1)', points: over('validation_accuracy')}], 'accuracy', v => (100 * v).toFixed(2) + ' %');

function theme(dark) {
  root.classList.toggle('dark', dark);
  $('theme').textContent = dark ? 'Light' : 'Dark';
}
const wish = matchMedia('(prefers-color-scheme: dark)');
theme(wish.matches);
wish.addEventListener('change', e => theme(e.matches));
$('theme').onclick = () => theme(!root.classList.contains('dark'));
)js";

}  // namespace sdx::train::loop
