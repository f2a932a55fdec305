/** Lines of at most 120 characters, as in documents written by hand; `indent` from the second line on. */
export function wrap(text: string, indent = ''): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > 120) {
      lines.push(line);
      line = indent + word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].join('\n');
}

export function list(items: readonly string[]): string {
  return items.map((item) => wrap(`- ${item}`, '  ')).join('\n');
}
