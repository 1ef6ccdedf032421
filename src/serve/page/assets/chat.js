// A conversation with a language model.

const chat = {messages: [], running: null, drawing: false};

function number(id) {
  const value = $(id).value.trim();
  return value === '' ? undefined : Number(value);
}

// Null where what stands there cannot be read: the banner says so.
function readTools() {
  const text = $('tools').value.trim();
  try {
    const tools = text ? JSON.parse(text) : [];
    if (!Array.isArray(tools)) throw new SyntaxError('an array is expected');
    return tools;
  } catch (error) {
    showBanner(`Tools: ${error.message}`);
    return null;
  }
}

function requestOf(tools) {
  const system = $('system').value.trim();
  const request = {
    model: $('chat-model').value,
    messages: [...(system ? [{role: 'system', content: system}] : []), ...chat.messages.map(({shown, ...message}) => message)],
    stream: true,
    stream_options: {include_usage: true},
    temperature: number('temperature'),
    top_p: number('top-p'),
    max_tokens: number('max-tokens'),
    seed: number('seed'),
  };
  if (tools.length) request.tools = tools;
  return request;
}

// ---- What is shown

const nearEnd = () => $('log').scrollHeight - $('log').scrollTop - $('log').clientHeight < 80;
const toEnd = () => { $('log').scrollTop = $('log').scrollHeight; };

function bubble(role, label) {
  $('greeting').hidden = true;
  const body = make('div', {className: 'body'});
  const element = make('article', {className: `message ${role}`, 'aria-label': label}, body);
  $('log').append(element);
  return {element, body};
}

function newAnswer() {
  const shown = bubble('assistant', 'The model’s answer');
  shown.foot = make('div', {className: 'foot'});
  shown.calls = make('div', {className: 'calls'});
  shown.element.append(shown.calls, shown.foot);
  shown.element.setAttribute('aria-busy', 'true');
  return {role: 'assistant', content: '', reasoning_content: '', tool_calls: [], shown};
}

function drawThought(answer) {
  const {shown} = answer;
  if (!answer.reasoning_content) return;
  if (!shown.thought) {
    shown.thought = make('div');
    shown.element.prepend(make('details', {className: 'thought'}, make('summary', {}, 'Reasoning'), shown.thought));
  }
  shown.thought.textContent = answer.reasoning_content;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function drawCalls(answer) {
  answer.shown.calls.replaceChildren(...answer.tool_calls.filter(Boolean).map((call) => make(
    'div', {className: 'call'}, make('div', {className: 'small'}, 'calls ', make('strong', {}, call.function.name)),
    make('pre', {className: 'wrap'}, pretty(call.function.arguments)))));
}

function draw(answer) {
  const follow = nearEnd();
  drawThought(answer);
  showMarkdown(answer.shown.body, answer.content);
  answer.shown.body.classList.toggle('caret', !answer.content && !answer.tool_calls.length && chat.running !== null);
  if (answer.tool_calls.length) drawCalls(answer);
  if (follow) toEnd();
}

// As often as the screen is drawn, not with every token.
function drawSoon(answer) {
  if (chat.drawing) return;
  chat.drawing = true;
  requestAnimationFrame(() => {
    chat.drawing = false;
    if (!answer.shown.done) draw(answer);
  });
}

function setRunning(controller) {
  chat.running = controller;
  $('stop').hidden = controller === null;
  $('send').hidden = controller !== null;
}

// ---- What comes

function takeDelta(answer, delta) {
  if (delta.content) answer.content += delta.content;
  if (delta.reasoning_content) answer.reasoning_content += delta.reasoning_content;
  for (const part of delta.tool_calls || []) {
    const call = answer.tool_calls[part.index] || (answer.tool_calls[part.index] = {id: '', type: 'function', function: {name: '', arguments: ''}});
    if (part.id) call.id = part.id;
    if (part.function && part.function.name) call.function.name = part.function.name;
    if (part.function && part.function.arguments) call.function.arguments += part.function.arguments;
  }
}

const reasons = {length: 'cut at the most tokens', tool_calls: 'waits for results', content_filter: 'withheld', stopped: 'stopped'};

function finish(answer, times, reason) {
  const {shown} = answer;
  const facts = [];
  const seconds = (times.end - (times.first || times.end)) / 1000;
  if (times.usage) facts.push(`${times.usage.prompt_tokens} + ${times.usage.completion_tokens} tokens`);
  if (times.usage && times.usage.completion_tokens > 1 && seconds > 0) facts.push(`${((times.usage.completion_tokens - 1) / seconds).toFixed(1)} tokens/s`);
  if (times.first) facts.push(`first after ${Math.round(times.first - times.begin)} ms`);
  if (reasons[reason]) facts.push(reasons[reason]);
  const copy = make('button', {type: 'button', className: 'quiet', onclick: () => copyText(answer.content, copy)}, 'Copy');
  shown.foot.replaceChildren(...facts.map((fact) => make('span', {}, fact)), ...(answer.content ? [copy] : []));
  shown.element.setAttribute('aria-busy', 'false');
  $('said').textContent = answer.content ? `Answer: ${answer.content}` : 'The answer has ended.';
}

// What tools gave goes back to the model: written by hand here.
function askResults(answer) {
  const areas = answer.tool_calls.map((call, i) => {
    const area = make('textarea', {rows: 2, id: `result-of-${chat.messages.length}-${i}`, className: 'code'});
    answer.shown.calls.children[i].append(make('label', {className: 'field', for: area.id}, make('span', {}, `Result of ${call.function.name}`), area));
    return area;
  });
  const send = make('button', {type: 'button', className: 'secondary', onclick: () => {
    const tools = readTools();
    if (!tools) return;
    send.remove();
    for (const area of areas) area.readOnly = true;
    answer.tool_calls.forEach((call, i) => chat.messages.push({role: 'tool', tool_call_id: call.id, content: areas[i].value}));
    answerNow(tools);
  }}, 'Send results');
  answer.shown.calls.append(send);
  chat.waits = () => { send.remove(); };
}

async function answerNow(tools) {
  const messages = chat.messages;
  const request = requestOf(tools);
  const answer = newAnswer();
  const times = {begin: performance.now()};
  const controller = new AbortController();
  setRunning(controller);
  draw(answer);
  toEnd();
  let reason = '';
  try {
    const response = await ask('/v1/chat/completions', {method: 'POST', json: request, signal: controller.signal});
    for await (const data of events(response)) {
      if (data === '[DONE]') break;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Refused(chunk.error.message || 'The answer broke off.', 500);
      if (chunk.usage) times.usage = chunk.usage;
      const choice = (chunk.choices || [])[0];
      if (!choice) continue;
      takeDelta(answer, choice.delta || {});
      if (!times.first && (answer.content || answer.reasoning_content || answer.tool_calls.length)) times.first = performance.now();
      if (choice.finish_reason) reason = choice.finish_reason;
      drawSoon(answer);
    }
  } catch (error) {
    if (error.name === 'AbortError') reason = 'stopped';
    else answer.shown.element.append(make('p', {className: 'failed', role: 'alert'}, error.message));
  }
  times.end = performance.now();
  if (chat.messages === messages) {
    keep(answer, times, reason);
    return;
  }
  answer.shown.done = true;  // a new conversation has begun meanwhile
  if (chat.running === controller) setRunning(null);
}

function keep(answer, times, reason) {
  setRunning(null);
  const follow = nearEnd();
  draw(answer);
  answer.shown.done = true;
  finish(answer, times, reason);
  answer.tool_calls = answer.tool_calls.filter(Boolean);
  const whole = reason !== 'stopped';
  if (!answer.reasoning_content) delete answer.reasoning_content;
  if (!answer.tool_calls.length || !whole) delete answer.tool_calls;
  if (answer.content || answer.tool_calls) chat.messages.push(answer);
  else if (chat.messages.length && chat.messages[chat.messages.length - 1].role === 'user') chat.messages.pop();
  if (answer.tool_calls) askResults(answer);
  if (follow) toEnd();
  $('message').focus();
}

function send() {
  const text = $('message').value.trim();
  if (!text || chat.running) return;
  if (!$('chat-model').value) {
    showBanner('There is no language model that is loaded.');
    return;
  }
  const tools = readTools();
  if (!tools) return;
  const last = chat.messages[chat.messages.length - 1];
  if (last && last.tool_calls) {  // the conversation goes on without results
    for (const call of last.tool_calls) chat.messages.push({role: 'tool', tool_call_id: call.id, content: ''});
    if (chat.waits) chat.waits();
  }
  showBanner('');
  chat.messages.push({role: 'user', content: text});
  bubble('user', 'You').body.textContent = text;
  $('message').value = '';
  growMessage();
  answerNow(tools);
}

function growMessage() {
  const area = $('message');
  area.style.height = 'auto';
  area.style.height = `${Math.min(area.scrollHeight, 200)}px`;
}

function startChat() {
  $('compose').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('message').addEventListener('input', growMessage);
  $('message').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  const stop = () => { if (chat.running) chat.running.abort(); };
  $('stop').addEventListener('click', stop);
  $('view-chat').addEventListener('keydown', (event) => { if (event.key === 'Escape') stop(); });
  $('new').addEventListener('click', () => {
    stop();
    chat.messages = [];
    for (const message of $('log').querySelectorAll('.message')) message.remove();
    $('greeting').hidden = false;
    $('message').focus();
  });
  if (matchMedia('(max-width: 900px)').matches) $('chat-settings').open = false;
}

function chatModelsChanged() {
  const names = catalogue.ready('language');
  fillSelect($('chat-model'), names);
  $('greeting-text').textContent = names.length ? 'What you write goes to this server and nowhere else.' : 'No language model is loaded: the tab Models loads one.';
  $('send').disabled = !names.length;
}
