// Texts as vectors, compared.

function cosine(a, b) {
  let dot = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i += 1) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return dot / Math.max(Math.sqrt(aa * bb), 1e-12);
}

function showLikeness(texts, vectors, ms) {
  const cell = (value) => {
    const td = make('td', {}, value.toFixed(2));
    td.style.background = `color-mix(in srgb, var(--accent) ${Math.round(Math.max(0, value) * 45)}%, var(--sunken))`;
    return td;
  };
  const head = make('tr', {}, make('td'), ...texts.map((text, i) => make('th', {scope: 'col', title: text}, String(i + 1))));
  const rows = texts.map((text, i) => make('tr', {}, make('th', {scope: 'row', title: text}, `${i + 1}  ${text}`), ...vectors.map((v) => cell(cosine(vectors[i], v)))));
  $('likeness').replaceChildren(
    make('p', {className: 'small'}, `${vectors[0].length} dimensions, ${Math.round(ms)} ms. Cosines: 1 is the same direction.`),
    make('div', {className: 'scroll', tabIndex: 0}, make('table', {className: 'matrix'}, make('thead', {}, head), make('tbody', {}, ...rows))));
}

async function compareTexts() {
  const input = $('texts').value.split('\n').map((line) => line.trim()).filter(Boolean).slice(0, 50);
  if (!input.length || !$('embed-model').value) return;
  const begin = performance.now();
  try {
    const answer = await askJson('/v1/embeddings', {method: 'POST', json: {model: $('embed-model').value, input}});
    const vectors = answer.data.sort((a, b) => a.index - b.index).map((d) => d.embedding);
    showLikeness(input, vectors, performance.now() - begin);
  } catch (error) {
    $('likeness').replaceChildren(make('p', {className: 'failed', role: 'alert'}, error.message));
  }
}

function startEmbed() {
  $('embed-form').addEventListener('submit', (event) => {
    event.preventDefault();
    compareTexts();
  });
}

function embedModelsChanged() {
  const names = catalogue.ready('embedding');
  fillSelect($('embed-model'), names);
  $('embed-form').querySelector('.primary').disabled = !names.length;
}
