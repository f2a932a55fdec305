/** What settles the promise that was made last with `keepSettlers`; to be read before another one is made. */
export let settleValue: (value: unknown) => void;
export let settleError: (error: unknown) => void;

/** One executor for all promises: it saves a closure for each. */
export function keepSettlers(resolve: typeof settleValue, reject: typeof settleError): void {
  settleValue = resolve;
  settleError = reject;
}
