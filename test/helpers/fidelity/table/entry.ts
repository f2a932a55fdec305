export type Call = readonly [command: string, ...args: unknown[]];

export interface Entry {
  readonly name: string;
  readonly calls: readonly Call[];
  /** Whether other keys and values may be put in place of the first call's; not where the answer would be random. */
  readonly vary: boolean;
}

/** One command with several argument lists; they run in order, on the fixture. */
export const entry = (name: string, ...argumentLists: (readonly unknown[])[]): Entry => ({
  name,
  calls: argumentLists.map((args): Call => [name, ...args]),
  vary: true,
});

/** The same, run exactly as it stands. */
export const fixed = (name: string, ...argumentLists: (readonly unknown[])[]): Entry => ({
  ...entry(name, ...argumentLists),
  vary: false,
});

/** Several commands that need each other. */
export const group = (name: string, ...calls: Call[]): Entry => ({ name, calls, vary: false });

export const LONG = 'x€'.repeat(9_000);
export const MANY = Array.from({ length: 2_000 }, (_, index) => `item ${index}`);
