// The picture with its faces and the frame of the crop, which can be dragged.

const $ = (id) => document.getElementById(id);
const kSvg = 'http://www.w3.org/2000/svg';

function svg(name, attributes, ...children) {
  const node = document.createElementNS(kSvg, name);
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
  node.append(...children);
  return node;
}

function element(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

let shown = null;  // the picture whose image is in the canvas
let zoom = 1;      // CSS pixels for one of the picture's

function fitCanvas() {
  const p = state.current, room = $('stage');
  if (!p) return;
  zoom = Math.min((room.clientWidth - 32) / p.width, (room.clientHeight - 32) / p.height);
  const canvas = $('canvas');
  canvas.style.width = `${p.width * zoom}px`;
  canvas.style.height = `${p.height * zoom}px`;
}

function drawStage() {
  const p = state.current, canvas = $('canvas');
  if (!p) return;
  fitCanvas();
  if (shown !== p) {
    const image = element('img');
    image.alt = `${p.file}, ${p.faces.length === 1 ? 'one face' : `${p.faces.length} faces`}`;
    if (p.preview) image.src = p.preview;
    canvas.replaceChildren(image, svg('svg', {}));
    shown = p;
  }
  const overlay = canvas.querySelector('svg'), focused = overlay.contains(document.activeElement);
  overlay.setAttribute('viewBox', `0 0 ${p.width} ${p.height}`);
  overlay.replaceChildren();
  const chosen = p.face;
  if (chosen !== null) drawDim(overlay, p, frameOf(p, chosen));
  p.faces.forEach((face, i) => overlay.append(drawFace(p, face, i, i === chosen)));
  if (chosen !== null) {
    const frame = drawFrame(p, frameOf(p, chosen));
    overlay.append(frame);
    if (focused) frame.focus({preventScroll: true});
  }
}

function turn(f) { return `translate(${f.mx} ${f.my}) rotate(${f.angle})`; }

function drawDim(overlay, p, f) {
  const big = 4 * (p.width + p.height), w = f.width / 2, h = f.height / 2;
  overlay.append(svg('path', {class: 'dim', transform: turn(f), 'fill-rule': 'evenodd',
                              d: `M${-big} ${-big}H${big}V${big}H${-big}Z M${-w} ${-h}V${h}H${w}V${-h}Z`}));
}

function drawFace(p, face, index, chosen) {
  const [x, y, w, h] = face.box, px = 1 / zoom;
  const group = svg('g', {class: chosen ? 'face-mark chosen' : 'face-mark'});
  group.append(svg('rect', {class: 'box-shadow', x, y, width: w, height: h, rx: 4 * px}));
  const box = svg('rect', {class: 'box', x, y, width: w, height: h, rx: 4 * px});
  box.addEventListener('click', () => choose(index, true));
  group.append(box);
  if (chosen) for (const point of Object.values(face.points)) group.append(svg('circle', {class: 'mark', cx: point[0], cy: point[1], r: 3 * px}));
  const tag = svg('g', {transform: `translate(${x} ${y}) scale(${px})`});
  tag.append(svg('rect', {class: 'tag', x: -1, y: -11, width: 22, height: 22, rx: 11}));
  const text = svg('text', {class: 'tag-text', x: 10, y: 0.5});
  text.textContent = String(index + 1);
  tag.append(text);
  group.append(tag);
  return group;
}

const kHandles = [[-1, -1], [1, -1], [1, 1], [-1, 1]];

function drawFrame(p, f) {
  const w = f.width, h = f.height, px = 1 / zoom;
  const group = svg('g', {class: 'frame', tabindex: 0, role: 'group', transform: turn(f), 'aria-roledescription': 'crop frame',
                          'aria-label': `Frame of face ${p.face + 1}. Arrow keys move it, plus and minus change its size.`});
  group.append(svg('rect', {class: 'frame-area', x: -w / 2, y: -h / 2, width: w, height: h}));
  for (const t of [-1 / 6, 1 / 6]) {
    group.append(svg('line', {class: 'frame-third', x1: t * w, x2: t * w, y1: -h / 2, y2: h / 2}),
                 svg('line', {class: 'frame-third', y1: t * h, y2: t * h, x1: -w / 2, x2: w / 2}));
  }
  if (f.shape === 'ellipse') group.append(svg('ellipse', {class: 'frame-shape', rx: w / 2, ry: h / 2}));
  if (f.shape === 'rounded') group.append(svg('rect', {class: 'frame-shape', x: -w / 2, y: -h / 2, width: w, height: h, rx: Math.min(w, h) / 10}));
  for (const [sx, sy] of kHandles) {
    const x = sx * w / 2, y = sy * h / 2;
    group.append(svg('rect', {class: 'handle', x: x - 5 * px, y: y - 5 * px, width: 10 * px, height: 10 * px, rx: 2 * px}));
    const grip = svg('rect', {class: 'grip', x: x - 16 * px, y: y - 16 * px, width: 32 * px, height: 32 * px, 'data-corner': `${sx},${sy}`});
    grip.style.cursor = sx * sy > 0 ? 'nwse-resize' : 'nesw-resize';
    group.append(grip);
  }
  return group;
}

// ---- Dragging, with a mouse, a pen or a finger

let drag = null;

function at(event) {
  const r = $('canvas').getBoundingClientRect();
  return {x: (event.clientX - r.left) / zoom, y: (event.clientY - r.top) / zoom};
}

function dragStart(event) {
  const p = state.current;
  if (!p || p.face === null || event.button !== 0 || !event.target.closest('.frame')) return;
  const corner = event.target.dataset.corner;
  drag = {from: at(event), frame: frameOf(p, p.face), corner: corner ? corner.split(',').map(Number) : null, before: copy(state.doc), moved: false};
  $('canvas').setPointerCapture(event.pointerId);
  event.preventDefault();
  $('canvas').querySelector('.frame').focus({preventScroll: true});
}

function dragMove(event) {
  if (!drag) return;
  const p = state.current, now = at(event), f = drag.frame;
  const dx = now.x - drag.from.x, dy = now.y - drag.from.y;
  if (!drag.moved && Math.hypot(dx, dy) * zoom < 3) return;
  drag.moved = true;
  let mx = f.mx + dx, my = f.my + dy, height = f.height;
  if (drag.corner) {
    const [sx, sy] = drag.corner, along = dx * f.cos + dy * f.sin, down = -dx * f.sin + dy * f.cos;
    // The opposite corner stays; the larger movement counts.
    const byWidth = sx * along / f.width, byHeight = sy * down / f.height;
    const grow = Math.max(0.05, 1 + (Math.abs(byWidth) > Math.abs(byHeight) ? byWidth : byHeight));
    height = f.height * grow;
    const ux = sx * (grow - 1) * f.width / 2, uy = sy * (grow - 1) * f.height / 2;
    mx = f.mx + ux * f.cos - uy * f.sin;
    my = f.my + ux * f.sin + uy * f.cos;
  }
  state.doc = copy(drag.before);
  state.doc.own[key(p, p.face)] = ownFrame(p, p.face, mx, my, height);
  refresh();
}

function dragEnd() {
  if (!drag) return;
  const {before, moved} = drag, after = state.doc;
  drag = null;
  if (!moved) return;
  state.doc = before;
  change('', (doc) => Object.assign(doc, after));
  refresh();
}

function frameKey(event) {
  const p = state.current;
  if (!event.target.classList.contains('frame') || event.ctrlKey || event.metaKey || event.altKey) return;
  const f = frameOf(p, p.face), far = event.shiftKey ? 0.1 : 0.01;
  const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
  const grow = {'+': 1.03, '=': 1.03, '-': 1 / 1.03, '_': 1 / 1.03}[event.key];
  if (event.key === 'Home') {
    change('', (doc) => delete doc.own[key(p, p.face)]);
  } else if (moves || grow) {
    const [x, y] = moves || [0, 0];
    change('keys', (doc) => {
      doc.own[key(p, p.face)] = ownFrame(p, p.face, f.mx + x * far * f.width, f.my + y * far * f.height, f.height * (grow || 1));
    });
  } else {
    return;
  }
  event.preventDefault();
  refresh();
}
