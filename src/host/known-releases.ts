/** Written by `npm run known-clients`: the releases on which the tests have passed, and what they are recognized by. */

/** Digests of their files, and of those of the packages that they rest on (`filesDigest`, `fileDigest`). */
export const KNOWN_RELEASES: Readonly<Record<string, string>> = {
  'denque 2.1.0': 'QTpFM8Iu4yn_wd9c',
  'ioredis 5.0.0': 'v2JRgGaTqmaHvGOE',
  'ioredis 5.0.1': 'v2JRgGaTqmaHvGOE',
  'ioredis 5.0.2': 'v2JRgGaTqmaHvGOE',
  'ioredis 5.0.3': 'TLrK6j5FTJ3s77Kk',
  'ioredis 5.0.4': 'TLrK6j5FTJ3s77Kk',
  'ioredis 5.0.5': 'gUNGh-tTRWM_Ke-M',
  'ioredis 5.0.6': 'gUNGh-tTRWM_Ke-M',
  'ioredis 5.1.0': 'gUNGh-tTRWM_Ke-M',
  'ioredis 5.2.0': 'TAjmF4aARGmoUUCz',
  'ioredis 5.2.1': 'plcptuDAJVySMqu1',
  'ioredis 5.2.2': 'plcptuDAJVySMqu1',
  'ioredis 5.2.3': 'Vhjk9yS5dEHw4bFd',
  'ioredis 5.2.4': 'zV3NoGRfm7LHrAvs',
  'ioredis 5.2.5': 'zV3NoGRfm7LHrAvs',
  'ioredis 5.2.6': '88FUxfMbwuaije66',
  'ioredis 5.3.0': 'b2dkjpqHiumUdYVD',
  'ioredis 5.3.1': 'pncZkcgIJDD8-cLJ',
  'ioredis 5.3.2': 'pncZkcgIJDD8-cLJ',
  'ioredis 5.4.0': 'Y51shSF2T5yls7S8',
  'ioredis 5.4.1': 'WyBuHGL2q_7kC75g',
  'ioredis 5.4.2': 'bGMczM9eJcufeDG6',
  'ioredis 5.5.0': 'd_f2BCh6hY5SPLVR',
  'ioredis 5.6.0': 'Nv6vF1Si0nY9AVum',
  'ioredis 5.6.1': 'C8wwaA6HEoxMTb3D',
  'ioredis 5.7.0': '6BJtB32twJUyl1BF',
  'ioredis 5.8.0': '9k00SM-X5wxgzsW_',
  'ioredis 5.8.1': 'D0F596QVqNAlQBx1',
  'ioredis 5.8.2': '90c2OEhiL1UKMzM2',
  'ioredis 5.9.0': 'nPumBmszyMpWSRm9',
  'ioredis 5.9.1': 'YH6Wj_hIHzTp_Rns',
  'ioredis 5.9.2': '-mfUUR1KkSLmyxau',
  'ioredis 5.9.3': 'HRU5532OSlwkownh',
  'ioredis 5.10.0': 'HRU5532OSlwkownh',
  'ioredis 5.10.1': 'KOfo9ow6b6CbNIyV',
  'ioredis 5.11.0': '31dDQ8Q0YDijSlRv',
  'ioredis 5.11.1': '2CIRaKG8rKxyU388',
  'ioredis 6.0.0': 'Pha2B-Q1D4QDpM5Y',
  'iovalkey 0.1.0': 'pL-L8pcUvfiji22N',
  'iovalkey 0.2.1': 'U8odqE78ujjPLPd1',
  'iovalkey 0.2.2': '1Rp6DJIIBNcznpqm',
  'iovalkey 0.3.1': 'jcBKIecTTLiAIeNt',
  'iovalkey 0.3.2': 'TxikPdRwOqyp2n6b',
  'iovalkey 0.3.3': 'P-K6SnuGG-_ocR6F',
  'iovalkey 0.4.0': 'A_7lOdn0reAsYDRU',
  'redis-parser 3.0.0': 'cEDuswN3DqO3DHa5',
  'standard-as-callback 2.1.0': '8mJGCmaDUSFJlumA',
};

/** Digests of the methods of all of them, of four characters each (`methodDigest`). */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(
  (
    '-XXu1Xfp2cR83QkR4Fsq4ddB5Fdp5Wem5mbq5n-16OET6cmW80Xq88nS8Orc8RqC96819AC-9o2O9o7z9w9AACFcAQ5QAQHiBSAFBiPxC8Dx' +
    'CKpeCQhuCjL1DEAKDPNLDSEQDgoMDsX-DxSMEYlJEqflF2OzFCF4FxueG-wrGJ0RGNieGTPdGhc4H48sHq7BIjQEJDBYJI_bJcSzK8-RKa25' +
    'LRLoLxj1MDkcMWMVN3PpOPNoOXrIOjHBP1AtPnweQ9ypQs_vRJPmRb1mRcmyRzPbSJ3USoxdSy8iT9l6TaVkUCHcUkWkUwVWWvKqX9YSXmLQ' +
    'YKDaYhkRZ-59ZaJzZg4__B2p_BEOa2MJaTf_bv3Vc3SycREpcYoccez-dHXye3lKe63we_yXepuXfIQgfleJfmgrgG_9gYfUhGxKin1njF0Y' +
    'kBzHkLCtkXmfkx4jlQ_tmceCoW_TqPBQqumrrdP4rfWQs4H2sNwesjDHt84Ct9bAtYKttmr-uq-quuYsv4pQvPSFvZmYv_Avwp_jx4QvyCE5' +
    'ybMDybSyzNRczhhP'
  ).match(/.{4}/g),
);
