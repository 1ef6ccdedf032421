// What models write, shown: a little Markdown as elements. Nothing of it is ever taken for HTML.

function inline(to, text) {
  const pattern = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[\s\S]*?[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*\n]*?[^\s*])?)\*(?![\w*])|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/g;
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    to.append(text.slice(last, match.index));
    last = match.index + match[0].length;
    if (match[1]) {
      to.append(make('code', {}, match[2].trim() || match[2]));
    } else if (match[3] !== undefined) {
      inline(to.appendChild(make('strong')), match[3]);
    } else if (match[4] !== undefined) {
      inline(to.appendChild(make('em')), match[4]);
    } else {
      to.append(make('a', {href: match[6], rel: 'noopener noreferrer nofollow', target: '_blank', title: match[6]}, match[5]));
    }
  }
  to.append(text.slice(last));
  return to;
}

function codeBlock(text, language) {
  const copy = make('button', {type: 'button', className: 'quiet', onclick: () => copyText(text, copy)}, 'Copy');
  return make('div', {className: 'code-block'}, make('div', {className: 'code-head'}, make('span', {}, language || 'text'), copy),
              make('pre', {tabIndex: 0}, make('code', {}, text)));
}

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not allowed';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

const listItem = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

// Lists within lists by their indentation.
function list(lines, at, to) {
  const [, indent, mark] = listItem.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const element = make(ordered ? 'ol' : 'ul');
  if (ordered) element.start = parseInt(mark, 10);
  let item = null;
  while (at < lines.length) {
    const match = listItem.exec(lines[at]);
    if (!match) {
      if (!item || !/^\s+\S/.test(lines[at])) break;
      inline(item, `\n${lines[at++].trim()}`);
      continue;
    }
    if (match[1].length < indent.length || (match[1].length === indent.length && /\d/.test(match[2]) !== ordered)) break;
    if (match[1].length > indent.length + 1 && item) {
      at = list(lines, at, item);
      continue;
    }
    item = element.appendChild(inline(make('li'), match[3]));
    at += 1;
  }
  to.append(element);
  return at;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());

function table(lines, at, to) {
  const element = make('table');
  const row = (line, tag) => element.append(make('tr', {}, ...cells(line).map((cell) => inline(make(tag), cell))));
  row(lines[at], 'th');
  for (at += 2; at < lines.length && lines[at].includes('|'); at += 1) row(lines[at], 'td');
  to.append(make('div', {className: 'scroll'}, element));
  return at;
}

function fenced(lines, at, to) {
  const [, fence, language] = /^\s*(`{3,}|~{3,})\s*([\w+#.-]*)/.exec(lines[at]);
  const code = [];
  for (at += 1; at < lines.length && !lines[at].trim().startsWith(fence); at += 1) code.push(lines[at]);
  to.append(codeBlock(code.join('\n'), language));
  return at + 1;
}

function paragraph(lines, at, to) {
  const text = [];
  const ends = (line) => !line.trim() || /^\s*(`{3,}|~{3,})/.test(line) || /^#{1,6}\s/.test(line) || /^>/.test(line) || listItem.test(line);
  do text.push(lines[at++]); while (at < lines.length && !ends(lines[at]));
  to.append(inline(make('p'), text.join('\n')));
  return at;
}

function showMarkdown(to, text) {
  to.replaceChildren();
  const lines = text.split('\n');
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
    } else if (/^\s*(`{3,}|~{3,})/.test(line)) {
      at = fenced(lines, at, to);
    } else if (/^#{1,6}\s/.test(line)) {
      to.append(inline(make('h3'), line.replace(/^#+\s+/, '')));
      at += 1;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      to.append(make('hr'));
      at += 1;
    } else if (/^>/.test(line)) {
      const quote = [];
      while (at < lines.length && /^>/.test(lines[at])) quote.push(lines[at++].replace(/^>\s?/, ''));
      to.append(inline(make('blockquote'), quote.join('\n')));
    } else if (listItem.test(line)) {
      at = list(lines, at, to);
    } else if (line.includes('|') && at + 1 < lines.length && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1]) && lines[at + 1].includes('-')) {
      at = table(lines, at, to);
    } else {
      at = paragraph(lines, at, to);
    }
  }
}
