// What holds the page together: tabs, models, the key, light and dark.

// Milliseconds: keys may allow few requests a minute, and models seldom change.
const kRefreshEvery = 30000, kRefreshWhenShown = 5000;

function showBanner(text) {
  $('banner').textContent = text;
  $('banner').hidden = !text;
}

function fillSelect(select, names) {
  const before = select.value;
  if ([...select.options].map((o) => o.value).join('\n') === names.join('\n') && select.options.length) return;
  select.replaceChildren(...(names.length ? names.map((name) => make('option', {value: name}, name)) : [make('option', {value: ''}, 'none is loaded')]));
  if (names.includes(before)) select.value = before;
}

// Arrow keys within a group of which one is chosen.
function radioKeys(group, choose) {
  const buttons = [...group.children];
  for (const button of buttons) button.addEventListener('click', () => choose(button));
  group.addEventListener('keydown', (event) => {
    const at = buttons.indexOf(document.activeElement);
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const to = event.key === 'Home' ? 0 : event.key === 'End' ? buttons.length - 1 : step && at >= 0 ? (at + step + buttons.length) % buttons.length : -1;
    if (to < 0) return;
    event.preventDefault();
    choose(buttons[to]);
    buttons[to].focus();
  });
}

function openTab(tab) {
  for (const other of document.querySelectorAll('[role="tab"]')) {
    const chosen = other === tab;
    other.setAttribute('aria-selected', String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    $(other.getAttribute('aria-controls')).hidden = !chosen;
  }
  history.replaceState(null, '', `#${tab.id.slice(4)}`);
  if (tab.id === 'tab-models' && document.documentElement.dataset.ready) refresh();
}

// ---- The list of models

const words = {READY: ['ready', 'good'], LOADING: ['loading', 'fair'], UNLOADING: ['unloading', 'fair'], FAILED: ['failed', 'poor'], UNAVAILABLE: ['not loaded', '']};
const kinds = {language: 'language model', embedding: 'embeddings', reranker: 'reranker', tensors: 'tensors'};

async function changeModel(button, name, action) {
  button.disabled = true;
  try {
    await ask(`/v2/repository/models/${encodeURIComponent(name)}/${action}`, {method: 'POST', json: {}});
    $('said').textContent = `${name}: ${action}ed`;
    showBanner('');
  } catch (error) {
    showBanner(error.message);
  }
  await refresh();
}

function modelItem(model) {
  const failed = model.state === 'UNAVAILABLE' && model.reason && model.reason !== 'unloaded';
  const [word, colour] = failed ? words.FAILED : words[model.state] || [model.state.toLowerCase(), ''];
  const facts = [];
  if (model.kind) facts.push(kinds[model.kind] || model.kind);
  if (model.version) facts.push(`version ${model.version}`);
  if (model.providers) facts.push(`on ${model.providers}`);
  if (model.batch > 1) facts.push(`batches up to ${model.batch}`);
  if (model.reason) facts.push(model.reason);
  const action = model.state === 'READY' ? 'unload' : 'load';
  const button = make('button', {type: 'button', className: 'secondary', 'aria-label': `${action} ${model.name}`}, action === 'load' ? 'Load' : 'Unload');
  button.addEventListener('click', () => changeModel(button, model.name, action));
  button.disabled = /LOADING/.test(model.state);
  return make('li', {className: 'model', 'data-name': model.name, 'data-state': model.state},
              make('h3', {}, model.name, make('span', {className: `badge ${colour}`}, word)), make('p', {className: 'small'}, facts.join(' · ') || '–'),
              make('div', {className: 'row'}, button));
}

function showModels() {
  const focused = document.activeElement && document.activeElement.getAttribute('aria-label');
  const list = $('models'), items = catalogue.models.map(modelItem);
  const same = list.children.length === items.length && items.every((item, i) => item.isEqualNode(list.children[i]));
  if (same && items.length) return;
  list.replaceChildren(...(items.length ? items : [make('li', {className: 'small'}, 'This server has no models.')]));
  if (focused) [...list.querySelectorAll('button')].find((b) => b.getAttribute('aria-label') === focused)?.focus();
}

// ---- How the server is

function showState(level, text) {
  $('state').className = `state ${level}`;
  if ($('state-text').textContent !== text) $('state-text').textContent = text;
}

async function refresh() {
  try {
    await loadCatalogue();
    const ready = catalogue.models.filter((m) => m.state === 'READY').length;
    showState(ready ? 'good' : 'fair', `${ready} of ${catalogue.models.length} ready`);
    showModels();
    chatModelsChanged();
    tryModelsChanged();
    embedModelsChanged();
  } catch (error) {
    showState('poor', error.status === 401 ? 'needs a key' : 'no connection');
  }
}

let declined = false;  // whoever closes the dialog is not asked again by what the page does by itself

function askForKey(refused) {
  if (declined || $('key-dialog').open) return;
  $('key-why').textContent = refused && server.key ? 'The server does not take this key.' : 'This server answers whoever has a key. It is kept in this tab alone.';
  $('key-dialog').showModal();
}

function startKey() {
  $('key').addEventListener('click', () => {
    declined = false;
    askForKey(false);
  });
  $('key-dialog').addEventListener('close', () => { declined = $('key-dialog').returnValue !== 'ok'; });
  $('key-cancel').addEventListener('click', () => $('key-dialog').close(''));
  $('key-form').addEventListener('submit', () => {
    server.key = $('key-value').value.trim();
    $('key-value').value = '';
    refresh();
  });
}

function startTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let chosen = localStorage.getItem('sdx-theme');
  const show = () => {
    const now = chosen || (dark.matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = now;
    $('theme').setAttribute('aria-pressed', String(now === 'dark'));
  };
  dark.addEventListener('change', show);
  $('theme').addEventListener('click', () => {
    chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    localStorage.setItem('sdx-theme', chosen);
    show();
  });
  show();
}

// One after the other, and not while nobody looks.
async function every(delay, work) {
  for (;;) {
    const needless = document.hidden || $('key-dialog').open;
    if (!needless) {
      try {
        await work();
      } catch { /* the state says it */ }
    }
    await new Promise((resolve) => setTimeout(resolve, delay()));
  }
}

async function start() {
  startTheme();
  startKey();
  startChat();
  startTry();
  startEmbed();
  startMetrics();
  radioKeys(document.querySelector('[role="tablist"]'), openTab);
  $('refresh').addEventListener('click', refresh);
  const named = document.getElementById(`tab-${location.hash.slice(1)}`);
  if (named) openTab(named);
  await refresh();
  document.documentElement.dataset.ready = 'true';
  every(() => ($('view-models').hidden ? kRefreshEvery : kRefreshWhenShown), refresh);
  every(() => kEvery, measure);
}

start();
