/** Written by `npm run known-clients`: the releases on which the tests have passed, and what they are recognized by. */

/** Digests of their files, and of those of the packages that they rest on (`filesDigest`, `fileDigest`). */
export const KNOWN_RELEASES: Readonly<Record<string, string>> = {
  'denque 2.1.0': 'QTpFM8Iu4yn_wd9c',
  'ioredis 5.0.0': 'bS5SdN4388aJoMvR',
  'ioredis 5.0.1': 'bS5SdN4388aJoMvR',
  'ioredis 5.0.2': 'bS5SdN4388aJoMvR',
  'ioredis 5.0.3': 'N8WhF14Ak4SYdxxU',
  'ioredis 5.0.4': 'N8WhF14Ak4SYdxxU',
  'ioredis 5.0.5': 'gWGDctavXlsQBpE_',
  'ioredis 5.0.6': 'gWGDctavXlsQBpE_',
  'ioredis 5.1.0': 'gWGDctavXlsQBpE_',
  'ioredis 5.2.0': '5uN5BeFe01PRXPIb',
  'ioredis 5.2.1': '5uN5BeFe01PRXPIb',
  'ioredis 5.2.2': '5uN5BeFe01PRXPIb',
  'ioredis 5.2.3': '5uN5BeFe01PRXPIb',
  'ioredis 5.2.4': 'OCtkQwKwsI1EWvue',
  'ioredis 5.2.5': 'OCtkQwKwsI1EWvue',
  'ioredis 5.2.6': 'Mgfmd1AXT5lHwmUG',
  'ioredis 5.3.0': 'RLIFvKgpa49O7i7N',
  'ioredis 5.3.1': '1ZxgV0O9mMphc-Ja',
  'ioredis 5.3.2': '1ZxgV0O9mMphc-Ja',
  'ioredis 5.4.0': 'oRsFqB_X4I64sSBY',
  'ioredis 5.4.1': 'xFd0VpDJ3jJGXOWU',
  'ioredis 5.4.2': 'Oauqon3PsYr1vvGr',
  'ioredis 5.5.0': 'J3sDaN1hJonm5PMN',
  'ioredis 5.6.0': 'w9rkR4QiLdcDxkQV',
  'ioredis 5.6.1': '-ZcfzCpRTidgxg44',
  'ioredis 5.7.0': '2oijujjReJEQgUXS',
  'ioredis 5.8.0': '9VK65bToe9NG9MFP',
  'ioredis 5.8.1': '9VK65bToe9NG9MFP',
  'ioredis 5.8.2': 'uEaB17hQhkFa7dK2',
  'ioredis 5.9.0': 'u4HlF3TWA0lwEd_B',
  'ioredis 5.9.1': 'xiPqF4hz6NvU4HhG',
  'ioredis 5.9.2': 'XhhZbXjcAprlcWaS',
  'ioredis 5.9.3': '2WMzub8F6KD8d-ac',
  'ioredis 5.10.0': '2WMzub8F6KD8d-ac',
  'ioredis 5.10.1': 'fczHd8utuS6WqX0c',
  'ioredis 5.11.0': 'BLwC0vvhB_-2wIhO',
  'ioredis 5.11.1': 'hE0kh6cGNrTlnE--',
  'ioredis 6.0.0': 'uH0kU3Zby92s8XZo',
  'iovalkey 0.1.0': 'ifAiiPlxqmdwW2GA',
  'iovalkey 0.2.1': 'C3LaW44BEah7T6TH',
  'iovalkey 0.2.2': 'GZzf2UBrJnJkyqVL',
  'iovalkey 0.3.1': '1-4EWaks210ZZqYW',
  'iovalkey 0.3.2': 'wVfNhBJq8Tm8Jn93',
  'iovalkey 0.3.3': '0r_31zw-lfEoluFW',
  'iovalkey 0.4.0': 'Ce71vLrOkvspwlXc',
  'redis-parser 3.0.0': 'IXE-tUrZKORYVrAu',
  'standard-as-callback 2.1.0': 'ulKp9xPgzjqCB15w',
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
