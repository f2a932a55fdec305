/** The recipe for a microservice of Nest: 100 messages at once, from a client of Nest's. */
import { ClientProxyFactory, Transport } from '@nestjs/microservices';
import { firstValueFrom } from 'rxjs';
import './recipe.mjs';

const { hostname: host, port } = new URL(process.env.REDIS_URL);
const client = ClientProxyFactory.create({ transport: Transport.REDIS, options: { host, port: Number(port) } });
await client.connect();
const messages = Array.from({ length: 100 }, (_, index) => [index, index, 1]);
const sums = await Promise.all(messages.map((numbers) => firstValueFrom(client.send('sum', numbers))));
console.log(JSON.stringify(sums));
process.exit(0);
