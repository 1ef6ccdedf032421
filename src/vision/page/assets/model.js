// What is known: pictures, settings, what can be undone. Nothing here touches the page.

const state = {
  info: null, runtime: 'native', pictures: [], current: null,
  // Settings of all crops, and of single faces what was done to their frames: "PICTURE:FACE" -> {face_height, offset_x, offset_y}.
  doc: {common: {preset: '', width: 512, height: 512, face_height: null, position: '', fill: '', colour: '#d9d4cc', shape: '', align_eyes: false,
                 enhance: 'none', fine: {}, format: 'auto', quality: 90}, own: {}},
  past: [], future: [],
};

const copy = (value) => JSON.parse(JSON.stringify(value));
const kUndoSteps = 200;
let lastKind = '', lastTime = 0;

// Changes the settings so that it can be undone. Changes of one kind that follow each other closely are undone together.
function change(kind, edit) {
  const before = copy(state.doc);
  edit(state.doc);
  if (JSON.stringify(before) === JSON.stringify(state.doc)) return false;
  const now = Date.now();
  if (!kind || kind !== lastKind || now - lastTime > 700) {
    state.past.push(before);
    if (state.past.length > kUndoSteps) state.past.shift();
  }
  lastKind = kind;
  lastTime = now;
  state.future = [];
  return true;
}

function step(from, to) {
  if (!from.length) return false;
  to.push(copy(state.doc));
  state.doc = from.pop();
  lastKind = '';
  return true;
}
const undo = () => step(state.past, state.future);
const redo = () => step(state.future, state.past);

const preset = () => state.info.presets.find((p) => p.name === state.doc.common.preset) || null;
const key = (picture, face) => `${picture.id}:${face}`;

// What the crop of one face is, with the defaults of preset and command filled in.
function effective(picture, face) {
  const c = state.doc.common, p = preset(), own = state.doc.own[key(picture, face)];
  const out = {
    width: p ? p.width : c.width, height: p ? p.height : c.height,
    face_height: c.face_height ?? (p ? p.face_height : 70),
    position: c.position || (p ? p.position : 'center'),
    offset_x: p && !c.position ? p.offset_x : 0, offset_y: p && !c.position ? p.offset_y : 0,
    shape: c.shape || (p ? p.shape : 'rectangle'), align_eyes: c.align_eyes || Boolean(p && p.align_eyes), fill: c.fill,
  };
  if (own) Object.assign(out, own, {position: 'custom'});
  return out;
}

// What is sent: only what differs from the defaults, as one would type it.
function wish(picture, face) {
  const c = state.doc.common, e = effective(picture, face), p = preset(), own = state.doc.own[key(picture, face)];
  const out = {face};
  if (p) out.preset = p.name; else Object.assign(out, {width: c.width, height: c.height});
  if (e.face_height !== (p ? p.face_height : 70)) out.face_height = e.face_height;
  if (own) Object.assign(out, {position: 'custom', offset_x: own.offset_x, offset_y: own.offset_y});
  else if (c.position) out.position = c.position;
  if (c.fill) out.fill = c.fill === 'colour' ? c.colour : c.fill;
  if (c.shape) out.shape = c.shape;
  if (c.align_eyes && !(p && p.align_eyes)) out.align_eyes = true;
  const enhance = enhanceText();
  if (enhance) out.enhance = enhance;
  if (c.format !== 'auto') out.format = c.format;
  if (c.quality !== 90) out.quality = c.quality;
  return out;
}

function enhanceText() {
  const c = state.doc.common;
  const parts = Object.entries(c.fine).map(([name, value]) => `${name}=${value}`);
  if (c.enhance !== 'none') parts.unshift(c.enhance);
  return parts.join(',');
}

// ---- Geometry, in pixels of the picture: what include/sdx/faces.hpp says of crop_box() and crop().

// The side of the box from chin to forehead: a face that the picture shows lying has its width there.
function heightOf(f) { return f.box[f.turned % 180 ? 2 : 3]; }

function frameOf(picture, face) {
  const e = effective(picture, face), f = picture.faces[face], [x, y, w, h] = f.box;
  const cx = x + w / 2, cy = y + h / 2;
  let height = heightOf(f) / (e.face_height / 100), width = height * e.width / e.height;
  let ox = 0, oy = 0;
  if (e.position === 'rule-of-thirds') oy = -1 / 3;
  if (e.position === 'custom') { ox = e.offset_x; oy = e.offset_y; }
  let [sin, cos] = {90: [-1, 0], 180: [0, -1], 270: [1, 0]}[f.turned] || [0, 1];
  const a = f.points.right_eye, b = f.points.left_eye;
  if (e.align_eyes && a && b) {
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    if (length > 1e-6) { sin = (b[1] - a[1]) / length; cos = (b[0] - a[0]) / length; }
  }
  const dx = -ox / 2 * width, dy = -oy / 2 * height;
  let mx = cx + dx * cos - dy * sin, my = cy + dx * sin + dy * cos;
  if (e.fill === 'shift') {
    const across = () => (width * Math.abs(cos) + height * Math.abs(sin)) / 2, down = () => (width * Math.abs(sin) + height * Math.abs(cos)) / 2;
    const shrink = Math.min(1, picture.width / (2 * across()), picture.height / (2 * down()));
    width *= shrink;
    height *= shrink;
    const inside = (v, reach, side) => (reach * 2 >= side ? side / 2 : Math.min(Math.max(v, reach), side - reach));
    mx = inside(mx, across(), picture.width);
    my = inside(my, down(), picture.height);
  }
  return {cx, cy, mx, my, width, height, sin, cos, angle: Math.atan2(sin, cos) * 180 / Math.PI, shape: e.shape};
}

const clamp = (v, low, high) => Math.min(high, Math.max(low, v));
const tidy = (v, digits) => Number(v.toFixed(digits));

// The own frame of a face such that its middle is (mx, my) and its height `height`.
function ownFrame(picture, face, mx, my, height) {
  const e = effective(picture, face), f = frameOf(picture, face), h = heightOf(picture.faces[face]);
  const face_height = tidy(clamp(h / height * 100, 1, 400), 2);
  const real = h / (face_height / 100), width = real * e.width / e.height;
  const dx = mx - f.cx, dy = my - f.cy;
  return {face_height,
          offset_x: tidy(clamp(-2 * (dx * f.cos + dy * f.sin) / width, -1, 1), 4),
          offset_y: tidy(clamp(-2 * (-dx * f.sin + dy * f.cos) / real, -1, 1), 4)};
}

function quoted(text) { return /^[\w./:=,@%+#-]+$/.test(text) && !text.startsWith('#') ? text : `'${text.replace(/'/g, "'\\''")}'`; }

function commandLine(picture, face) {
  const w = wish(picture, face);
  let line = `sdx faces crop ${quoted(picture.file.startsWith('-') ? `./${picture.file}` : picture.file)} -o crops`;
  for (const [name, value] of Object.entries(w)) {
    if (name === 'face') line += ` --face ${value + 1}`;
    else if (value === true) line += ` --${name.replace('_', '-')}`;
    else line += ` --${name.replace('_', '-')}${Number(value) < 0 ? '=' : ' '}${quoted(String(value))}`;
  }
  return `${line} --runtime ${picture.runtime}`;
}
