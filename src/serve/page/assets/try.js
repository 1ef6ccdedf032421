// One inference with any model: a picture, a text, or the request as JSON.

const attempt = {mode: 'picture', picture: null};

const open = (extent) => !(extent > 0);

// How a picture fits an input: rows, columns, channels, and whether channels come first; null where it does not.
function pictureInput(metadata) {
  for (const input of (metadata && metadata.inputs) || []) {
    const shape = (input.shape || []).map(Number);
    if (!['FP32', 'UINT8'].includes(input.datatype)) continue;
    const s = shape.length === 3 ? [1, ...shape] : shape;
    if (s.length !== 4) continue;
    const first = [1, 3].includes(s[1]), last = [1, 3].includes(s[3]);
    if (!first && !last && !open(s[1])) continue;
    const channelsFirst = first || !last;
    const channels = channelsFirst ? (open(s[1]) ? 3 : s[1]) : s[3];
    const [rows, columns] = channelsFirst ? [s[2], s[3]] : [s[1], s[2]];
    return {name: input.name, datatype: input.datatype, rank: shape.length, channelsFirst, channels, rows, columns};
  }
  return null;
}

function drawPicture(input) {
  const side = Math.min(Math.max(number('side') || 224, 1), 4096);
  const width = open(input.columns) ? side : input.columns, height = open(input.rows) ? side : input.rows;
  const canvas = $('preview');
  canvas.width = width;
  canvas.height = height;
  const picture = attempt.picture;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  context.imageSmoothingQuality = 'high';
  if ($('fit').value === 'stretch') {
    context.drawImage(picture, 0, 0, width, height);
  } else {
    const scale = Math.max(width / picture.width, height / picture.height);
    const w = width / scale, h = height / scale;
    context.drawImage(picture, (picture.width - w) / 2, (picture.height - h) / 2, w, h, 0, 0, width, height);
  }
  canvas.hidden = false;
  return context.getImageData(0, 0, width, height);
}

function tensorOf(pixels, input) {
  const count = pixels.width * pixels.height, {channels} = input;
  const out = input.datatype === 'UINT8' ? new Uint8Array(count * channels) : new Float32Array(count * channels);
  const how = input.datatype === 'UINT8' ? 'bytes' : $('values').value;
  const mean = how === 'imagenet' ? [0.485, 0.456, 0.406] : how === 'signed' ? [0.5, 0.5, 0.5] : [0, 0, 0];
  const deviation = how === 'imagenet' ? [0.229, 0.224, 0.225] : how === 'signed' ? [0.5, 0.5, 0.5] : [1, 1, 1];
  for (let i = 0; i < count; i += 1) {
    const rgb = pixels.data.subarray(4 * i, 4 * i + 3);
    for (let c = 0; c < channels; c += 1) {
      const value = channels === 1 ? 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] : rgb[c];
      out[input.channelsFirst ? c * count + i : i * channels + c] = how === 'bytes' ? value : (value / 255 - mean[c]) / deviation[c];
    }
  }
  return out;
}

// The outputs that may be scores of classes come as their best ten, with names where the server knows them.
function wantedOutputs(metadata) {
  return (metadata.outputs || []).map((output) => {
    const shape = (output.shape || []).map(Number);
    const scores = /^FP/.test(output.datatype) && shape.length === 2 && (open(shape[1]) || shape[1] > 1);
    return scores ? {name: output.name, parameters: {classification: 10}} : {name: output.name};
  });
}

function inferPath(model) {
  return `/v2/models/${encodeURIComponent(model.name)}${model.version ? `/versions/${encodeURIComponent(model.version)}` : ''}/infer`;
}

// The project's preprocessing, done by the server.
async function runPictureByProject(model) {
  const [file] = $('picture').files;
  if (!file) throw new Error('Choose a picture first.');
  return askJson(`/predict/${encodeURIComponent(model.name)}`, {method: 'POST', body: file, headers: {'Content-Type': file.type || 'image/jpeg'}});
}

async function runPicture(model) {
  if ($('values').value === 'project') return runPictureByProject(model);
  const input = pictureInput(model.metadata);
  if (!input) throw new Error('This model has no input that a picture fits: its request can be written as JSON.');
  if (!attempt.picture) throw new Error('Choose a picture first.');
  const pixels = drawPicture(input);
  const data = tensorOf(pixels, input);
  const extents = input.channelsFirst ? [input.channels, pixels.height, pixels.width] : [pixels.height, pixels.width, input.channels];
  const head = new TextEncoder().encode(JSON.stringify({
    inputs: [{name: input.name, datatype: input.datatype, shape: input.rank === 4 ? [1, ...extents] : extents, parameters: {binary_data_size: data.byteLength}}],
    outputs: wantedOutputs(model.metadata),
  }));
  const headers = {'Content-Type': 'application/octet-stream', 'Inference-Header-Content-Length': String(head.length)};
  return askJson(inferPath(model), {method: 'POST', body: new Blob([head, data]), headers});
}

async function runText(model) {
  const text = $('text').value;
  if (model.kind === 'reranker') {
    const documents = $('documents').value.split('\n').filter((line) => line.trim());
    return askJson('/v1/rerank', {method: 'POST', json: {model: model.name, query: text, documents}});
  }
  const input = (model.metadata.inputs || []).find((i) => i.datatype === 'BYTES');
  if (!input) throw new Error('This model has no input that a text fits.');
  const shape = (input.shape || [1]).map((extent) => (open(Number(extent)) ? 1 : Number(extent)));
  return askJson(inferPath(model), {method: 'POST', json: {inputs: [{name: input.name, datatype: 'BYTES', shape, data: [text]}]}});
}

const runJson = (model) => askJson(inferPath(model), {method: 'POST', json: JSON.parse($('json').value)});

// ---- What is shown

function bars(rows) {
  const most = Math.max(...rows.map((row) => Math.abs(row.value)), 1e-12);
  return make('div', {className: 'bars'}, ...rows.map((row) => {
    const fill = make('div', {className: 'fill'});
    fill.style.width = `${Math.max(0, row.value / most) * 100}%`;
    return make('div', {className: 'bar-row'}, make('span', {}, row.name), make('output', {}, Number(row.value.toPrecision(4)).toString()),
                make('div', {className: 'track'}, fill));
  }));
}

function showOutput(output) {
  const data = output.data || [];
  const title = `${output.name}: ${output.datatype}[${(output.shape || []).join(', ')}]`;
  const classes = output.datatype === 'BYTES' && data.every((entry) => /^-?[\d.eE+-]+:\d+(:|$)/.test(entry));
  const rows = classes ? data.map((entry) => {
    const [score, index, ...label] = entry.split(':');
    return {name: label.length ? label.join(':') : `class ${index}`, value: Number(score)};
  }) : null;
  const shown = data.length > 1000 ? [...data.slice(0, 1000), `… ${data.length - 1000} more`] : data;
  const text = shown.map((v) => (typeof v === 'number' ? Number(v.toPrecision(6)) : v)).join(output.datatype === 'BYTES' ? '\n' : ', ');
  return make('div', {className: 'output'}, make('h3', {}, title), rows && rows.length ? bars(rows) : make('pre', {className: 'wrap', tabIndex: 0}, text));
}

function showAnswer(answer, ms, model) {
  const parts = [make('p', {className: 'small'}, `${Math.round(ms)} ms, there and back`)];
  if (model.kind === 'reranker' && answer.results) {
    parts.push(bars(answer.results.map((r) => ({name: (r.document && (r.document.text || r.document)) || `document ${r.index + 1}`, value: r.relevance_score}))));
  } else if (Array.isArray(answer.top)) {
    parts.push(bars(answer.top.map((c) => ({name: c.label || `class ${c.class}`, value: c.score}))));
  } else if (Array.isArray(answer.outputs)) {
    parts.push(...answer.outputs.map(showOutput));
  } else {
    parts.push(make('pre', {className: 'wrap', tabIndex: 0}, JSON.stringify(answer, null, 2)));
  }
  $('result').replaceChildren(...parts);
}

async function runAttempt() {
  const model = catalogue.of($('try-model').value);
  if (!model) return;
  $('run').disabled = true;
  $('result').replaceChildren(make('p', {className: 'small'}, 'Running…'));
  const begin = performance.now();
  try {
    const run = {picture: runPicture, text: runText, json: runJson}[attempt.mode];
    showAnswer(await run(model), performance.now() - begin, model);
  } catch (error) {
    $('result').replaceChildren(make('p', {className: 'failed', role: 'alert'}, error.message));
  }
  $('run').disabled = false;
}

// ---- Which model

function exampleRequest(metadata) {
  const inputs = (metadata.inputs || []).map((input) => {
    const shape = (input.shape || []).map((extent) => (open(Number(extent)) ? 1 : Number(extent)));
    const count = shape.reduce((a, b) => a * b, 1);
    const one = input.datatype === 'BYTES' ? 'text' : input.datatype === 'BOOL' ? false : 0;
    return {name: input.name, datatype: input.datatype, shape, data: count <= 4096 ? Array(count).fill(one) : []};
  });
  const lines = inputs.map((input) => `    ${JSON.stringify(input)}`);
  return `{\n  "inputs": [\n${lines.join(',\n')}\n  ]\n}`;
}

function setMode(mode) {
  attempt.mode = mode;
  for (const button of $('try-modes').children) {
    button.setAttribute('aria-checked', String(button.dataset.mode === mode));
    button.tabIndex = button.dataset.mode === mode ? 0 : -1;
  }
  for (const part of $('try-form').querySelectorAll('[data-for]')) part.hidden = part.dataset.for !== mode;
}

function tryModelChanged() {
  const model = catalogue.of($('try-model').value);
  $('run').disabled = !model;
  $('result').replaceChildren(make('p', {className: 'small'}, 'Nothing yet.'));
  if (!model || !model.metadata) return $('try-facts').replaceChildren();
  const value = (v) => make('span', {}, `${v.name}: ${v.datatype}[${(v.shape || []).map((e) => (open(Number(e)) ? '?' : e)).join(', ')}]`);
  $('try-facts').replaceChildren(...(model.metadata.inputs || []).map(value), make('span', {'aria-hidden': 'true'}, '→'), ...(model.metadata.outputs || []).map(value));
  $('json').value = exampleRequest(model.metadata);
  const picture = pictureInput(model.metadata);
  const byProject = $('values').querySelector('[value="project"]');
  byProject.hidden = byProject.disabled = !model.project;
  $('values').value = model.project ? 'project' : 'imagenet';
  fitChanged();
  $('side-field').hidden = !picture || !(open(picture.rows) || open(picture.columns));
  $('documents-field').hidden = model.kind !== 'reranker';
  $('text-label').textContent = model.kind === 'reranker' ? 'Query' : 'Text';
  const texts = (model.metadata.inputs || []).some((i) => i.datatype === 'BYTES');
  setMode(picture ? 'picture' : texts ? 'text' : 'json');
}

async function choosePicture() {
  const [file] = $('picture').files;
  attempt.picture = null;
  $('preview').hidden = true;
  if (!file) return;
  try {
    attempt.picture = await createImageBitmap(file);
    const model = catalogue.of($('try-model').value), input = model && pictureInput(model.metadata);
    if (input) drawPicture(input);
  } catch {
    $('result').replaceChildren(make('p', {className: 'failed', role: 'alert'}, 'This browser cannot read the picture.'));
  }
}

// Where the server prepares the picture, how it fits is the project's matter.
function fitChanged() {
  $('fit').disabled = $('values').value === 'project';
}

function startTry() {
  $('values').addEventListener('change', fitChanged);
  $('try-model').addEventListener('change', tryModelChanged);
  $('picture').addEventListener('change', choosePicture);
  for (const id of ['fit', 'side']) $(id).addEventListener('change', () => { if (attempt.picture) choosePicture(); });
  radioKeys($('try-modes'), (button) => setMode(button.dataset.mode));
  $('try-form').addEventListener('submit', (event) => {
    event.preventDefault();
    runAttempt();
  });
}

function tryModelsChanged() {
  const before = $('try-model').value;
  fillSelect($('try-model'), catalogue.ready('tensors', 'reranker'));
  if ($('try-model').value !== before || !$('try-facts').children.length) tryModelChanged();
}
