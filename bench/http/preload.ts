/** Loaded into the service before its own code (`node --import`), so that the example holds nothing of the bench. */
import { answerParent } from '../suite/child.js';
import { WriteCounter } from '../variants/write-counter.js';
import type { ServiceUsage } from './service.js';

const redisPort = process.env.COUNT_WRITES_TO_PORT;
const counter = redisPort === undefined ? undefined : new WriteCounter(Number(redisPort));

answerParent(async (): Promise<ServiceUsage> => {
  const { user, system } = process.cpuUsage();
  return { cpuUs: user + system, writes: counter?.writes ?? 0 };
});
// A listener keeps the channel open, and an open channel would keep a service alive that has shut down.
process.channel?.unref();
