const expected = new Set<string>();

/** Announces warnings, by code or name, that the tests of the running file bring about. */
export function expectWarnings(...codes: string[]): void {
  for (const code of codes) expected.add(code);
}

export const isExpected = ({ code, name }: Error & { code?: string }): boolean => expected.has(code ?? name);

/** Another file may run in the same process. */
export function forgetExpectedWarnings(): void {
  expected.clear();
}
