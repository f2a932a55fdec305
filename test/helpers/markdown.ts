/** What tests read out of documents. */

export interface Heading {
  readonly level: number;
  /** As written, backticks included. */
  readonly text: string;
}

/** Without the content of code blocks, where `#` begins a comment and brackets are no links. */
const withoutCode = (text: string): string => text.replaceAll(/^```[\s\S]*?^```$/gm, '');

export const headings = (text: string): Heading[] =>
  [...withoutCode(text).matchAll(/^(#+) (.+)$/gm)].map(([, marks = '', heading = '']) => ({
    level: marks.length,
    text: heading,
  }));

/** The anchor that GitHub and npm give a heading; a second one of the same text gets `-1`, see `anchors`. */
export const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');

export function anchors(text: string): Set<string> {
  const found = new Map<string, number>();
  return new Set(
    headings(text).map((heading) => {
      const slug = slugOf(heading.text);
      const before = found.get(slug) ?? 0;
      found.set(slug, before + 1);
      return before === 0 ? slug : `${slug}-${before}`;
    }),
  );
}

/** The addresses of links and images. */
export function links(text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target);
}

/** What stands under a heading, up to the next one of its level or above. */
export function section(text: string, heading: string): string {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (start === -1) throw new Error(`expected a heading: ${heading}`);
  const level = /^#+/.exec(lines[start]!)![0].length;
  const end = lines.findIndex(
    (line, index) => index > start && /^#+ /.test(line) && /^#+/.exec(line)![0].length <= level,
  );
  return lines.slice(start + 1, end === -1 ? undefined : end).join('\n');
}
