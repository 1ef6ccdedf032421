// Talking to the server that this page comes from.

const $ = (id) => document.getElementById(id);

// An element with properties, attributes ("data-…", "aria-…", role, for) and children; texts are texts, never markup.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/^(data-|aria-|role$|for$)/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const server = {
  get key() { return sessionStorage.getItem('sdx-key') || ''; },
  set key(value) { if (value) sessionStorage.setItem('sdx-key', value); else sessionStorage.removeItem('sdx-key'); },
};

class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function refusal(response) {
  let message = `The server answered ${response.status}.`;
  try {
    const answer = JSON.parse(await response.text());
    const said = answer.error && (answer.error.message || answer.error);
    if (typeof said === 'string') message = said;
  } catch { /* no JSON: said above */ }
  return new Refused(message, response.status);
}

async function ask(path, {method = 'GET', json, body, headers = {}, signal} = {}) {
  const all = {...headers};
  if (server.key) all.Authorization = `Bearer ${server.key}`;
  if (json !== undefined) all['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {method, headers: all, body: json === undefined ? body : JSON.stringify(json), signal, cache: 'no-store'});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused('The server does not answer.', 0);
  }
  if (response.ok) return response;
  if (response.status === 401) askForKey(true);
  throw await refusal(response);
}

const askJson = async (path, options) => (await ask(path, options)).json();

// The values of "data:" lines of an event stream, as they come.
async function* events(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const {done, value} = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, {stream: true});
      const lines = rest.split(/\r?\n/);
      rest = done ? '' : lines.pop();
      for (const line of lines) {
        if (line.startsWith('data:')) yield line.slice(5).trim();
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Prometheus' text: [{name, labels, value}].
function parseMetrics(text) {
  const samples = [];
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] || '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    samples.push({name: match[1], labels, value: match[3] === '+Inf' ? Infinity : Number(match[3])});
  }
  return samples;
}

// ---- The models

const catalogue = {
  models: [],  // {name, version, state, reason, kind, metadata}
  ready(...kinds) {
    const names = this.models.filter((m) => m.state === 'READY' && kinds.includes(m.kind)).map((m) => m.name);
    return [...new Set(names)];
  },
  of(name) { return this.models.find((m) => m.name === name && m.state === 'READY'); },
};

function kindOf(platform) {
  const match = /(language|embedding|reranker)$/.exec(platform || '');
  return match ? match[1] : 'tensors';
}

const known = new Map();  // "name:version" of models that are ready: what they say of themselves

// Asking for a model that is not loaded would load it: those are left alone.
async function describe(model) {
  const id = `${model.name}:${model.version}`;
  if (model.state !== 'READY') {
    known.delete(id);
    return model;
  }
  if (!known.has(id)) {
    const path = `/v2/models/${encodeURIComponent(model.name)}${model.version ? `/versions/${encodeURIComponent(model.version)}` : ''}`;
    const metadata = await askJson(path);
    let config = {};
    try {
      config = await askJson(`${path}/config`);
    } catch { /* then nobody knows who runs it */ }
    let info = {};
    try {
      if (kindOf(metadata.platform) === 'tensors') info = await askJson(`/info/${encodeURIComponent(model.name)}`);
    } catch { /* then its request is written here */ }
    known.set(id, {metadata, config, info});
  }
  const {metadata, config, info} = known.get(id);
  const parameter = (name) => config.parameters && config.parameters[name] && config.parameters[name].string_value;
  return {...model, metadata, kind: kindOf(metadata.platform), providers: parameter('sardonyx.providers'), batch: config.max_batch_size, project: info.project};
}

async function loadCatalogue() {
  const index = await askJson('/v2/repository/index', {method: 'POST', json: {}});
  catalogue.models = await Promise.all(index.map((m) => {
    const model = {name: m.name, version: m.version || '', state: (m.state || 'UNAVAILABLE').toUpperCase(), reason: m.reason || ''};
    return describe(model).catch((error) => ({...model, reason: error.message}));
  }));
}
