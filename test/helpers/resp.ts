/** Bytes of RESP, and the ways in which a network may cut them. */

export type CutWay = { readonly way: string; readonly chunks: Buffer[] };

/** Text in which each character is a byte. */
export const bytes = (text: string | Buffer): Buffer => (typeof text === 'string' ? Buffer.from(text, 'latin1') : text);

export function bulk(value: string | Buffer): Buffer {
  const content = Buffer.from(value);
  return Buffer.concat([Buffer.from(`$${content.length}\r\n`), content, Buffer.from('\r\n')]);
}

export function aggregate(marker: '*' | '~' | '>' | '%', elements: readonly (string | Buffer)[]): Buffer {
  const count = marker === '%' ? elements.length / 2 : elements.length;
  return Buffer.concat([Buffer.from(`${marker}${count}\r\n`), ...elements.map(bytes)]);
}

/** `whole` cut behind each of `positions`; what is not a place inside is left out. */
export function cutAt(whole: Buffer, positions: readonly number[]): Buffer[] {
  const inside = [...new Set(positions)].filter((position) => position > 0 && position < whole.length);
  const edges = [0, ...inside.sort((a, b) => a - b), whole.length];
  return edges.slice(1).map((edge, index) => Buffer.from(whole.subarray(edges[index], edge)));
}

const byteByByte = (whole: Buffer): Buffer[] => Array.from(whole, (byte) => Buffer.from([byte]));

/** Whole, byte by byte, and in two at every boundary. */
export function* everyCut(whole: Buffer): Generator<CutWay> {
  yield { way: 'whole', chunks: [Buffer.from(whole)] };
  yield { way: 'byte by byte', chunks: byteByByte(whole) };
  for (let position = 1; position < whole.length; position += 1) {
    yield { way: `cut at ${position}`, chunks: cutAt(whole, [position]) };
  }
}
