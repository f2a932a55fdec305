/** Texts around the figures: Markdown with the places of figures in it, one file of `texts/` each. */

import { existsSync, readFileSync } from 'node:fs';
import { type Figure, medianAt, ratio, say } from './figure.js';

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

/**
 * A text with each `{{name}}` in it replaced; what had one is wrapped again. A paragraph that is nothing but a name may
 * become any number of paragraphs, or none. undefined where there is no such text
 */
export function fillText(name: string, fill: (name: string) => string): string | undefined {
  const file = new URL(`texts/${name}.md`, import.meta.url);
  if (!existsSync(file)) return undefined;
  const paragraphs = readFileSync(file, 'utf8').trim().split('\n\n');
  const filled = paragraphs.map((paragraph) => {
    const whole = /^{{([^}]+)}}$/.exec(paragraph)?.[1];
    if (whole !== undefined) return fill(whole);
    const items = paragraph.split(/\n(?=- )/);
    return items.map((item) => fillItem(item, fill)).join('\n');
  });
  return filled.filter((paragraph) => paragraph !== '').join('\n\n');
}

function fillItem(item: string, fill: (name: string) => string): string {
  const filled = item.replace(/\s+/g, ' ').replace(/{{([^}]+)}}/g, (_, name: string) => fill(name));
  return item.includes('{{') ? wrap(filled, item.startsWith('- ') ? '  ' : '') : item;
}

/** What a text says of figures: `figure | series | place` is a median there, `a | b | c ÷ d | e | f` a ratio of two. */
export function figureText(figures: readonly Figure[]): (name: string) => string {
  const medianOf = (path: string) => {
    const [figure = '', series = '', place = ''] = path.split(' | ');
    return medianAt(figures, figure, series, place);
  };
  return (name) => {
    const [of = '', to] = name.split(' ÷ ');
    return to === undefined ? say(medianOf(of)) : ratio(medianOf(of), medianOf(to));
  };
}
