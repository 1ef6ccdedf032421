// What the server counts, as lines over the last three minutes.

const kEvery = 2000, kPoints = 90;

const sum = (samples, name, test = () => true) => samples.filter((s) => s.name === name && test(s.labels)).reduce((a, s) => a + s.value, 0);
// What this page and other monitors ask all the time.
const monitor = (labels) => /^\/(metrics|health|v2\/health\/.*|v2\/repository\/index|)$/.test(labels.route || '');

// Counters come as what they grew by in a second.
const charts = [
  {id: 'requests', title: 'Requests', unit: '/s', counter: (s) => sum(s, 'sdx_http_requests_total', (l) => !monitor(l))},
  {id: 'tokens', title: 'Tokens', unit: '/s',
   counter: (s) => sum(s, 'sdx_engine_generated_tokens_total')},
  {id: 'queue', title: 'Queue', unit: 'waiting', gauge: (s) => sum(s, 'sdx_engine_requests_waiting') + sum(s, 'nv_inference_pending_request_count')},
  {id: 'running', title: 'Under way', unit: 'requests', gauge: (s) => sum(s, 'sdx_http_requests_running')},
  {id: 'first', title: 'Time to first token', unit: 'ms', mean: 'sdx_time_to_first_token_seconds', scale: 1000},
  {id: 'latency', title: 'Time of a request', unit: 'ms', mean: 'sdx_http_request_duration_seconds', scale: 1000, test: (l) => !monitor(l)},
];

const measured = {before: null, at: 0};

function valueOf(chart, samples, seconds) {
  if (chart.gauge) return chart.gauge(samples);
  const {before} = measured;
  if (!before) return null;
  if (chart.counter) return Math.max(0, chart.counter(samples) - chart.counter(before)) / seconds;
  const grown = (name) => sum(samples, name, chart.test) - sum(before, name, chart.test);
  const count = grown(`${chart.mean}_count`);
  return count > 0 ? (grown(`${chart.mean}_sum`) / count) * chart.scale : null;
}

const shortly = (value) => (value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString('en') : value.toFixed(value >= 10 ? 1 : 2));

function svg(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function drawChart(chart) {
  const most = Math.max(...chart.points.filter((p) => p !== null), 1e-9);
  const x = (i) => ((i + kPoints - chart.points.length) / (kPoints - 1)) * 300, y = (v) => 86 - (v / most) * 76;
  const runs = [];  // without the gaps in which nothing was measured
  chart.points.forEach((value, i) => {
    if (value === null) return;
    if (i === 0 || chart.points[i - 1] === null || !runs.length) runs.push([]);
    runs[runs.length - 1].push([x(i), y(value)]);
  });
  const path = (run) => run.map(([px, py], i) => `${i ? 'L' : 'M'}${px.toFixed(1)} ${py.toFixed(1)}`).join('') + (run.length === 1 ? 'h2' : '');
  chart.svg.replaceChildren(
    svg('line', {x1: 0, x2: 300, y1: 86.5, y2: 86.5, class: 'grid'}),
    ...runs.map((run) => svg('path', {d: `${path(run)}V86.5H${run[0][0].toFixed(1)}Z`, class: 'area'})),
    ...runs.map((run) => svg('path', {d: path(run), class: 'line'})));
  const now = chart.points[chart.points.length - 1];
  const last = now !== null && now !== undefined ? now : chart.mean ? [...chart.points].reverse().find((p) => p !== null) : null;
  const text = last === null || last === undefined ? '–' : shortly(last);
  chart.value.replaceChildren(text, ' ', make('span', {}, chart.unit));
  chart.most.textContent = chart.points.some((p) => p !== null) ? `at most ${shortly(most > 1e-9 ? most : 0)} ${chart.unit}` : 'nothing yet';
  chart.svg.setAttribute('aria-label', `${chart.title}: now ${text} ${chart.unit}, ${chart.most.textContent}`);
}

async function measure() {
  const samples = parseMetrics(await (await ask('/metrics')).text());
  const now = performance.now();
  for (const chart of charts) {
    chart.points.push(valueOf(chart, samples, (now - measured.at) / 1000));
    if (chart.points.length > kPoints) chart.points.shift();
    drawChart(chart);
  }
  measured.before = samples;
  measured.at = now;
}

function startMetrics() {
  for (const chart of charts) {
    chart.points = [];
    chart.value = make('div', {className: 'value'}, '–');
    chart.most = make('div', {className: 'small'}, 'nothing yet');
    chart.svg = svg('svg', {viewBox: '0 0 300 90', preserveAspectRatio: 'none', role: 'img'});
    $('charts').append(make('section', {className: 'card chart', id: `chart-${chart.id}`, 'aria-label': chart.title}, make('h2', {}, chart.title), chart.value, chart.svg, chart.most));
  }
}
