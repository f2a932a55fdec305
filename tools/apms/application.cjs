require('./play.cjs').play(require(process.env.HOST));
