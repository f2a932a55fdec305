/** Loaded into the service before its own code (`node --import`), so that the example holds nothing of the bench. */
import { answerParent } from '../suite/child.js';
import { WriteCounter } from '../variants/write-counter.js';
import type { ServiceUsage, UsageOrder } from './service.js';

let counter: WriteCounter | undefined;

answerParent(async ({ countWritesTo }: UsageOrder): Promise<ServiceUsage> => {
  if (countWritesTo !== undefined) counter ??= new WriteCounter(countWritesTo);
  const { user, system } = process.cpuUsage();
  return { cpuUs: user + system, writes: counter?.writes ?? 0 };
});
// A listener keeps the channel open, and an open channel would keep a service alive that has shut down.
process.channel?.unref();
