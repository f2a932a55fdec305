import { cascade } from './cascade.js';
import type { Experiment } from './experiment.js';
import { ioThreads } from './io-threads.js';
import { queue } from './queue.js';
import { roundTrips } from './round-trips.js';
import { scale } from './scale.js';
import { webService } from './web-service.js';

export const EXPERIMENTS: readonly Experiment[] = [queue, ioThreads, roundTrips, cascade, webService, scale];
