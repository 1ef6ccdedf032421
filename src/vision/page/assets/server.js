// Talking to the server that this page comes from.

const token = new URLSearchParams(location.search).get('token') || '';

async function failure(response) {
  try {
    const answer = await response.json();
    if (answer.error && answer.error.message) return new Error(answer.error.message);
  } catch { /* no JSON: said below */ }
  return new Error(`The server answered ${response.status}.`);
}

async function ask(path, {method = 'GET', json, signal} = {}) {
  const headers = {'X-Sdx-Token': token};
  if (json !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {method, headers, body: json === undefined ? undefined : JSON.stringify(json), signal});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error('The server does not answer. Is `sdx faces page` still running?');
  }
  if (!response.ok) throw await failure(response);
  return response;
}

// With progress, which fetch() does not tell.
function upload(file, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', `/api/pictures?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader('X-Sdx-Token', token);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.responseType = 'json';
    request.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
    request.onerror = () => reject(new Error('The picture could not be sent. Is `sdx faces page` still running?'));
    request.onload = () => {
      const answer = request.response;
      if (request.status === 201) resolve(answer);
      else reject(new Error(answer && answer.error ? answer.error.message : `The server answered ${request.status}.`));
    };
    request.send(file);
  });
}

function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
