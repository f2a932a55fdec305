/** moleculer: two nodes that call each other, send each other events and share a cache, all through Redis. */
import { ServiceBroker } from 'moleculer';

const events = [];
const served = { asked: 0 };

function broker(nodeID, services) {
  const made = new ServiceBroker({
    nodeID,
    logger: false,
    transporter: process.env.REDIS_URL,
    cacher: process.env.REDIS_URL,
  });
  for (const service of services) made.createService(service);
  return made;
}

const math = {
  name: 'math',
  actions: {
    add: ({ params: { a, b } }) => a + b,
    fail: () => Promise.reject(new Error('as asked')),
    square: {
      cache: { keys: ['a'], ttl: 30 },
      handler({ params: { a } }) {
        served.asked += 1;
        return a * a;
      },
    },
  },
};
const audit = { name: 'audit', events: { 'order.paid': ({ params: { id } }) => void events.push(id) } };

const back = broker('back', [math, audit]);
const front = broker('front', []);
await Promise.all([back.start(), front.start()]);
await front.waitForServices(['math', 'audit']);
const numbers = Array.from({ length: 200 }, (_, index) => index);
const sums = await Promise.all(numbers.map((a) => front.call('math.add', { a, b: 1 })));
const failed = await front.call('math.fail').catch(({ message }) => message);
const squares = async () => Promise.all(numbers.slice(0, 20).map((a) => front.call('math.square', { a })));
const cold = await squares();
const cached = await squares();
for (const id of numbers) front.emit('order.paid', { id });
while (events.length < numbers.length) await new Promise((resolve) => setTimeout(resolve, 10));
await front.cacher.clean();
console.log(JSON.stringify({ sums, failed, cold, cached, served, events: events.sort((a, b) => a - b) }));
await Promise.all([front.stop(), back.stop()]);
