import { play } from './play.cjs';

play(await import(process.env.HOST));
