// The controls, and what happens when.

function say(text) { $('status').textContent = text; }

function toast(text) {
  const close = element('button', 'icon', '×');
  close.type = 'button';
  close.setAttribute('aria-label', 'Close this message');
  const mark = element('b', '', '!');
  mark.setAttribute('aria-hidden', 'true');
  const node = element('div', 'toast', mark, element('span', '', text), close);
  close.addEventListener('click', () => node.remove());
  $('toasts').append(node);
  while ($('toasts').children.length > 4) $('toasts').firstChild.remove();
  setTimeout(() => node.remove(), 15000);
}

const title = (name) => name[0].toUpperCase() + name.slice(1);
const plural = (n, one, many) => (n === 1 ? `1 ${one}` : `${n} ${many}`);
const size = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

// ---- Pictures

let waiting = [], sending = 0;

function add(files) {
  for (const file of files) {
    const p = {id: null, file: file.name, source: file, faces: [], face: null, state: 'waiting', progress: 0, preview: null, error: ''};
    state.pictures.push(p);
    if (file.size > state.info.limits.upload_bytes) fail(p, `The file has ${size(file.size)}; at most ${size(state.info.limits.upload_bytes)} are taken.`);
    else waiting.push(p);
  }
  drawPictures();
  sendNext();
}

function fail(p, message) {
  p.state = 'failed';
  p.error = message;
  p.source = null;
  toast(`${p.file}: ${message}`);
}

function sendNext() {
  while (sending < 2 && waiting.length) send(waiting.shift());
}

async function send(p) {
  ++sending;
  p.state = 'sending';
  try {
    const answer = await upload(p.source, (share) => { p.progress = share; if (share === 1) p.state = 'looking'; drawPictures(); });
    p.source = null;
    take(p, answer);
    p.state = 'ready';
    say(`${p.file}: ${plural(p.faces.length, 'face', 'faces')}`);
    await showPreview(p);
    // Until somebody chooses, the first picture with a face is shown.
    const better = !state.current || (!state.touched && !state.current.faces.length && p.faces.length);
    if (better && state.pictures.includes(p)) await open(p);
  } catch (error) {
    if (p.state !== 'ready') fail(p, error.message); else toast(error.message);
  }
  --sending;
  drawPictures();
  sendNext();
}

function take(p, answer) {
  Object.assign(p, answer);
  if (!p.faces.length) p.face = null;
  else if (p.face === null || p.face >= p.faces.length) p.face = 0;
  p.stamp = (p.stamp || 0) + 1;
}

async function showPreview(p) {
  const blob = await (await ask(`/api/pictures/${p.id}/preview?size=1600`)).blob();
  p.preview = URL.createObjectURL(blob);
}

async function open(p) {
  state.current = p;
  refresh();
  if (p.runtime === state.runtime) return;
  try {
    take(p, await (await ask(`/api/pictures/${p.id}`)).json());
  } catch (error) { toast(error.message); }
  refresh();
}

function remove(p) {
  state.pictures = state.pictures.filter((other) => other !== p);
  waiting = waiting.filter((other) => other !== p);
  if (p.id) ask(`/api/pictures/${p.id}`, {method: 'DELETE'}).catch(() => {});
  if (p.preview) URL.revokeObjectURL(p.preview);
  if (state.current === p) {
    state.current = state.pictures.find((other) => other.state === 'ready') || null;
    shown = null;
  }
  say(`${p.file} removed`);
  refresh();
  drawPictures();
}

function stateText(p) {
  if (p.state === 'failed') return 'Cannot be read';
  if (p.state === 'waiting') return 'Waiting …';
  if (p.state === 'sending') return 'Sending …';
  if (p.state === 'looking') return 'Looking for faces …';
  return plural(p.faces.length, 'face', 'faces');
}

function drawPictures() {
  $('empty').hidden = state.pictures.length > 0;
  $('work').hidden = state.pictures.length === 0;
  $('pictures').replaceChildren(...state.pictures.map((p) => {
    let thumb = element('span', 'thumb', p.state === 'failed' ? '!' : '');
    if (p.preview) {
      thumb = element('img', 'thumb');
      thumb.src = p.preview;
      thumb.alt = '';
    }
    const words = element('span', '', element('span', 'title', p.file), element('span', 'state', stateText(p)));
    if (p.state === 'sending' || p.state === 'looking') {
      const bar = element('progress');
      bar.max = 1;
      if (p.state === 'sending') bar.value = p.progress;
      bar.setAttribute('aria-label', `${p.file}: ${stateText(p)}`);
      words.append(bar);
    }
    const button = element('button', 'open', thumb, words);
    button.type = 'button';
    button.title = p.error ? `${p.file}: ${p.error}` : p.file;
    button.disabled = p.state !== 'ready' && p.state !== 'failed';
    if (p === state.current) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => {
      state.touched = true;
      if (p.state === 'ready') open(p); else toast(`${p.file}: ${p.error}`);
    });
    const cross = element('button', 'remove', '×');
    cross.type = 'button';
    cross.setAttribute('aria-label', `Remove ${p.file}`);
    cross.addEventListener('click', () => remove(p));
    return element('li', `picture${p === state.current ? ' current' : ''}${p.state === 'failed' ? ' failed' : ''}`, button, cross);
  }));
}

// ---- Faces

const kLevels = {low: ['▁', 'Low quality'], medium: ['▃', 'Medium quality'], high: ['▅', 'High quality']};

function choose(index, focus) {
  const p = state.current;
  if (!p || index < 0 || index >= p.faces.length) return;
  p.face = index;
  refresh();
  if (focus) $('canvas').querySelector('.frame').focus({preventScroll: true});
}

function drawFaces() {
  const p = state.current, list = $('faces'), focused = list.contains(document.activeElement);
  $('faces-note').textContent = p && !p.faces.length ? 'No face was found in this picture.' : '';
  list.replaceChildren(...(p ? p.faces : []).map((face, i) => {
    const [mark, word] = kLevels[face.quality.level];
    const q = face.quality, angle = (v) => (v === null ? '–' : `${Math.round(v)}°`);
    const heading = element('span', 'title', `Face ${i + 1}`, element('small', '', `${Math.round(face.score * 100)} %`));
    const level = element('span', `level ${q.level}`, `${mark} ${word}`);
    const facts = element('span', 'facts', `${Math.round(q.size_px)} px · sharpness ${Math.round(q.sharpness)}`);
    const pose = element('span', 'facts', `yaw ${angle(q.yaw)} · pitch ${angle(q.pitch)} · roll ${angle(q.roll)}`);
    const button = element('button', 'face', heading, level, facts, pose);
    button.type = 'button';
    button.setAttribute('role', 'radio');
    button.setAttribute('aria-checked', String(i === p.face));
    button.tabIndex = i === p.face ? 0 : -1;
    button.addEventListener('click', () => choose(i));
    return button;
  }));
  if (focused && p && p.face !== null) list.children[p.face].focus();
}

// Arrow keys within a group of radio buttons.
function radioKeys(group, pick) {
  group.addEventListener('keydown', (event) => {
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!by) return;
    event.preventDefault();
    const all = [...group.children], next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
    next.focus();
    pick(next, all.indexOf(next));
  });
}

// ---- Settings

const kFine = [['exposure', 'Exposure', -2, 2, 0.1, 0], ['brightness', 'Brightness', 0.5, 2, 0.05, 1], ['contrast', 'Contrast', 0.5, 2, 0.05, 1],
               ['saturation', 'Saturation', 0, 2.5, 0.05, 1], ['smooth_skin', 'Smooth skin', 0, 1, 0.05, 0], ['sharpen', 'Sharpen', 0, 2, 0.1, 0],
               ['blur_background', 'Blur background, px', 0, 50, 1, 0]];

function option(value, text) {
  const node = element('option', '', text);
  node.value = value;
  return node;
}

function buildControls() {
  $('preset').append(option('', 'Custom size'), ...state.info.presets.map((p) => option(p.name, `${title(p.name)} – ${p.width} × ${p.height}`)));
  $('enhance').append(...state.info.enhancements.map((name) => option(name, title(name))));
  for (const [name, label, low, high, by, usual] of kFine) {
    const slider = element('input'), value = element('output');
    Object.assign(slider, {type: 'range', min: low, max: high, step: by, id: `fine-${name}`});
    slider.addEventListener('input', () => edit(`fine-${name}`, (c) => {
      if (Number(slider.value) === usual && c.enhance === 'none') delete c.fine[name]; else c.fine[name] = Number(slider.value);
    }));
    $('fine-controls').append(element('label', 'field', element('span', 'split', label, value), slider));
  }
  $('most').textContent = String(Math.round(state.info.limits.upload_bytes / 1048576));
}

function edit(kind, apply) {
  if (change(kind, (doc) => apply(doc.common))) refresh();
}

function bind(id, apply, event = 'change') {
  $(id).addEventListener(event, () => edit(event === 'input' ? id : '', (c) => apply(c, $(id))));
}

function whole(input, low, high, old) {
  const n = Math.round(Number(input.value));
  return Number.isFinite(n) && input.value !== '' ? clamp(n, low, high) : old;
}

function bindControls() {
  bind('preset', (c, e) => { c.preset = e.value; c.face_height = null; c.position = ''; state.doc.own = {}; });
  bind('width', (c, e) => { c.width = whole(e, 1, 16384, c.width); });
  bind('height', (c, e) => { c.height = whole(e, 1, 16384, c.height); });
  bind('position', (c, e) => { if (e.value !== 'custom') { c.position = e.value; dropOwn(); } });
  bind('fill', (c, e) => { c.fill = e.value; });
  bind('colour', (c, e) => { c.colour = e.value; }, 'input');
  bind('shape', (c, e) => { c.shape = e.value; });
  bind('align-eyes', (c, e) => { c.align_eyes = e.checked; });
  bind('enhance', (c, e) => { c.enhance = e.value; c.fine = {}; });
  bind('format', (c, e) => { c.format = e.value; });
  bind('quality', (c, e) => { c.quality = whole(e, 1, 100, c.quality); });
  $('face-height').addEventListener('input', () => {
    const p = state.current, value = Number($('face-height').value);
    if (!p || p.face === null) return;
    const own = state.doc.own[key(p, p.face)];
    if (change('face-height', (doc) => { if (own) doc.own[key(p, p.face)].face_height = value; else doc.common.face_height = value; })) refresh();
  });
  $('reset').addEventListener('click', () => { if (change('', dropOwn)) refresh(); });
}

function dropOwn() {
  const p = state.current;
  if (p && p.face !== null) delete state.doc.own[key(p, p.face)];
}

function drawSettings() {
  const c = state.doc.common, p = state.current, has = Boolean(p && p.face !== null), ps = preset();
  const e = has ? effective(p, p.face) : null, own = has ? state.doc.own[key(p, p.face)] : null;
  $('preset').value = c.preset;
  $('preset-note').textContent = ps ? ps.description : '';
  $('preset-note').hidden = !ps;
  $('sizes').hidden = Boolean(ps);
  for (const id of ['width', 'height', 'fill', 'shape', 'enhance', 'format', 'quality', 'colour']) if ($(id) !== document.activeElement || $(id).type !== 'number') $(id).value = c[id];
  const percent = e ? e.face_height : c.face_height ?? 70;
  $('face-height').value = percent;
  $('face-height-value').textContent = `${Math.round(percent)} %`;
  $('position').value = own ? 'custom' : c.position;
  $('position').querySelector('[value=custom]').disabled = !own;
  $('align-eyes').checked = c.align_eyes || Boolean(ps && ps.align_eyes);
  $('align-eyes').disabled = Boolean(ps && ps.align_eyes);
  $('own').hidden = !own;
  $('colour-field').hidden = c.fill !== 'colour';
  for (const [name, , , , , usual] of kFine) {
    const slider = $(`fine-${name}`), value = c.fine[name] ?? usual;
    slider.value = value;
    slider.parentNode.querySelector('output').textContent = c.fine[name] === undefined && c.enhance !== 'none' ? 'as the preset' : String(value);
  }
  for (const id of ['face-height', 'download', 'reset']) $(id).disabled = !has;
  const count = state.pictures.reduce((n, q) => n + (q.state === 'ready' ? q.faces.length : 0), 0);
  $('download-all').disabled = count === 0;
  $('download-all').textContent = count > 1 ? `All ${count} as ZIP` : 'All as ZIP';
  $('undo').disabled = !state.past.length;
  $('redo').disabled = !state.future.length;
  $('command').textContent = has ? commandLine(p, p.face) : '';
  $('command-group').hidden = !has;
}

function drawRuntimes() {
  const p = state.current;
  for (const button of $('runtimes').children) {
    const name = button.dataset.runtime, on = name === state.runtime, t = p && p.latency_ms && p.latency_ms[name];
    button.setAttribute('aria-checked', String(on));
    button.tabIndex = on ? 0 : -1;
    button.querySelector('.ms').textContent = t ? `${(t.preprocess + t.inference + t.postprocess).toFixed(1)} ms` : 'not measured';
  }
}

async function switchRuntime(name) {
  if (name === state.runtime) return;
  try {
    await ask('/api/runtime', {method: 'POST', json: {runtime: name}});
    state.runtime = name;
    say(`The detector runs on ${name === 'ort' ? 'ONNX Runtime' : 'Sardonyx'}`);
    if (state.current) await open(state.current);
  } catch (error) { toast(error.message); }
  drawRuntimes();
}

// ---- The result

const kShowable = ['jpeg', 'png', 'webp', 'avif', 'bmp'];
let resultKey = '', resultAbort = null, resultTimer = 0, resultUrl = '';

function drawResult() {
  const p = state.current;
  if (!p || p.face === null) {
    resultKey = '';
    if (resultAbort) resultAbort.abort();
    $('result').replaceChildren(element('span', 'small', p ? 'No face' : 'Choose a face'));
    $('result-size').textContent = '–';
    $('result-note').textContent = '';
    return;
  }
  const e = effective(p, p.face), w = wish(p, p.face);
  $('result-size').textContent = `${e.width} × ${e.height}`;
  const now = JSON.stringify([p.id, p.stamp, w]);
  if (now === resultKey) return;
  resultKey = now;
  clearTimeout(resultTimer);
  $('result').classList.add('busy');
  $('result').setAttribute('aria-busy', 'true');
  resultTimer = setTimeout(() => fetchResult(p, w, now), drag ? 60 : 120);
}

async function fetchResult(p, w, now) {
  if (resultAbort) resultAbort.abort();
  resultAbort = new AbortController();
  const own = w.format || (kShowable.includes(p.format) ? '' : 'jpeg');
  const asked = kShowable.includes(own) || !own ? w : {...w, format: 'png'};
  try {
    const blob = await (await ask(`/api/pictures/${p.id}/crop`, {method: 'POST', json: asked, signal: resultAbort.signal})).blob();
    if (now !== resultKey) return;
    const image = element('img');
    image.alt = `The crop of face ${p.face + 1}`;
    if (resultUrl) URL.revokeObjectURL(resultUrl);
    resultUrl = URL.createObjectURL(blob);
    image.src = resultUrl;
    $('result').replaceChildren(image);
    $('result-note').textContent = asked === w ? `${blob.type.replace('image/', '').toUpperCase()}, ${size(blob.size)}` : w.format.toUpperCase();
  } catch (error) {
    if (error.name === 'AbortError' || now !== resultKey) return;
    $('result').replaceChildren(element('span', 'small', 'No crop'));
    $('result-note').textContent = '';
    toast(error.message);
  }
  $('result').classList.remove('busy');
  $('result').removeAttribute('aria-busy');
}

const stem = (name) => name.replace(/\.[^.]*$/, '') || name;

async function downloadOne() {
  const p = state.current;
  try {
    const response = await ask(`/api/pictures/${p.id}/crop`, {method: 'POST', json: wish(p, p.face)});
    const name = `${stem(p.file)}_face${p.face + 1}${response.headers.get('X-Sdx-Ending') || ''}`;
    save(await response.blob(), name);
    say(`${name} downloaded`);
  } catch (error) { toast(error.message); }
}

async function downloadAll() {
  const button = $('download-all'), words = button.textContent;
  const crops = state.pictures.filter((p) => p.state === 'ready').flatMap((p) => p.faces.map((_, i) => ({picture: p.id, ...wish(p, i)})));
  button.disabled = true;
  button.textContent = 'Making the ZIP …';
  try {
    save(await (await ask('/api/zip', {method: 'POST', json: {crops}})).blob(), 'faces.zip');
    say(`${plural(crops.length, 'crop', 'crops')} downloaded`);
  } catch (error) { toast(error.message); }
  button.disabled = false;
  button.textContent = words;
}

// ---- All of it

let drawnFaces = '';

function refresh() {
  drawStage();
  const p = state.current, faces = JSON.stringify(p && [p.id, p.stamp, p.face]);
  if (faces !== drawnFaces) {
    drawnFaces = faces;
    drawFaces();
    drawPictures();
    $('caption').textContent = p ? `${p.file} · ${p.width} × ${p.height} · ${p.format} · decoded in ${p.times_ms.decode.toFixed(0)} ms · ${p.provider}` : '';
    if (!p) $('canvas').replaceChildren();
  }
  drawSettings();
  drawRuntimes();
  drawResult();
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $('theme').setAttribute('aria-pressed', String(name === 'dark'));
}

function globalKey(event) {
  const typing = event.target.matches('input:not([type=range]):not([type=checkbox]), select, textarea');
  const command = event.ctrlKey || event.metaKey, letter = event.key.toLowerCase();
  if (command && (letter === 'z' || letter === 'y')) {
    event.preventDefault();
    if (letter === 'y' || event.shiftKey ? redo() : undo()) refresh();
  } else if (!command && !typing && event.key === '?') {
    $('keys').showModal();
  } else if (!command && !typing && (event.key === '[' || event.key === ']') && state.current && state.current.face !== null) {
    choose(state.current.face + (event.key === ']' ? 1 : -1), event.target.classList.contains('frame'));
  }
}

function bindPage() {
  for (const button of document.querySelectorAll('[data-choose]')) button.addEventListener('click', () => $('files').click());
  $('files').addEventListener('change', () => { add([...$('files').files]); $('files').value = ''; });
  let depth = 0;
  const carries = (event) => event.dataTransfer && [...event.dataTransfer.types].includes('Files');
  addEventListener('dragenter', (e) => { if (carries(e)) { e.preventDefault(); ++depth; $('over').hidden = false; } });
  addEventListener('dragover', (e) => { if (carries(e)) e.preventDefault(); });
  addEventListener('dragleave', (e) => { if (carries(e) && --depth <= 0) { depth = 0; $('over').hidden = true; } });
  addEventListener('drop', (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    depth = 0;
    $('over').hidden = true;
    add([...e.dataTransfer.files]);
  });
  addEventListener('paste', (e) => { if (e.clipboardData && e.clipboardData.files.length) add([...e.clipboardData.files]); });
  const canvas = $('canvas');
  canvas.addEventListener('pointerdown', dragStart);
  canvas.addEventListener('pointermove', dragMove);
  canvas.addEventListener('pointerup', dragEnd);
  canvas.addEventListener('pointercancel', dragEnd);
  canvas.addEventListener('keydown', frameKey);
  addEventListener('keydown', globalKey);
  new ResizeObserver(() => drawStage()).observe($('stage'));
  $('undo').addEventListener('click', () => undo() && refresh());
  $('redo').addEventListener('click', () => redo() && refresh());
  $('help').addEventListener('click', () => $('keys').showModal());
  $('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  $('download').addEventListener('click', downloadOne);
  $('download-all').addEventListener('click', downloadAll);
  $('copy').addEventListener('click', () => navigator.clipboard.writeText($('command').textContent).then(() => say('Copied'), () => toast('The browser does not allow copying; select the text instead.')));
  radioKeys($('faces'), (_, i) => choose(i));
  radioKeys($('runtimes'), (button) => switchRuntime(button.dataset.runtime));
  for (const button of $('runtimes').children) button.addEventListener('click', () => switchRuntime(button.dataset.runtime));
}

const dark = matchMedia('(prefers-color-scheme: dark)');
setTheme(dark.matches ? 'dark' : 'light');
dark.addEventListener('change', () => setTheme(dark.matches ? 'dark' : 'light'));

ask('/api/info').then((response) => response.json()).then((info) => {
  state.info = info;
  state.runtime = info.runtime;
  buildControls();
  bindControls();
  bindPage();
  if (info.presets.some((p) => p.name === 'avatar')) state.doc.common.preset = 'avatar';
  refresh();
  document.documentElement.dataset.ready = 'true';
}, (error) => toast(error.message));
