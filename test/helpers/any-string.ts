import fc from 'fast-check';

const SURROGATES = 0x800;
const character = fc
  .integer({ min: 0, max: 0x10_ffff - SURROGATES })
  .map((at) => String.fromCodePoint(at < 0xd800 ? at : at + SURROGATES));
const names = fc.constantFrom('__proto__', 'toString', 'valueOf', 'length', 'name');

/** As `fc.string({ unit: 'binary' })`, which first makes a map of all characters: a second of processor time. */
export function anyString(maxLength: number): fc.Arbitrary<string> {
  const strings = fc.array(character, { maxLength }).map((all) => all.join(''));
  return fc.oneof({ weight: 20, arbitrary: strings }, names);
}
