/** Written by `npm run known-clients`: the releases that are known, and what they are recognized by. */

/** Digests of their files, and of those of the packages that they rest on (`filesDigest`, `fileDigest`). */
export const KNOWN_RELEASES: Readonly<Record<string, string>> = {
  'denque 2.1.0': '125ftqk92y',
  'ioredis 5.0.0': 'kkugawwz1u plvrs7dj1w',
  'ioredis 5.0.1': 'kkugawwz1u plvrs7dj1w',
  'ioredis 5.0.2': 'kkugawwz1u plvrs7dj1w',
  'ioredis 5.0.3': 'kgxd9b2emt phyoqliymv',
  'ioredis 5.0.4': 'kgxd9b2emt phyoqliymv',
  'ioredis 5.0.5': 'jm3rpdc71r on536nsr1t',
  'ioredis 5.0.6': 'jm3rpdc71r on536nsr1t',
  'ioredis 5.1.0': 'jm3rpdc71r on536nsr1t',
  'ioredis 5.2.0': 'iary2rc4t9 nbt9k1sotb',
  'ioredis 5.2.1': 'iary2rc4t9 nbt9k1sotb',
  'ioredis 5.2.2': 'iary2rc4t9 nbt9k1sotb',
  'ioredis 5.2.3': 'iary2rc4t9 nbt9k1sotb',
  'ioredis 5.2.4': 'j5omsxsji8 o6pya893ia',
  'ioredis 5.2.5': 'j5omsxsji8 o6pya893ia',
  'ioredis 5.2.6': 'kx358e8xem py4gpopheo',
  'ioredis 5.3.0': 'gef6cp22sv lfghtzimsx',
  'ioredis 5.3.1': 'j5npkuyc8t o6p125ew8v',
  'ioredis 5.3.2': 'j5npkuyc8t o6p125ew8v',
  'ioredis 5.4.0': 'iwk019gdds on3ufy1ek4',
  'ioredis 5.4.1': 'ij9vx8bh93 o9tqbwwiff',
  'ioredis 5.4.2': 'ixol50g1ob oo8fjp12un',
  'ioredis 5.5.0': 'ixol50g1ob np5nxp1x28',
  'ioredis 5.6.0': 'ixol50g1ob ou7yxwrwgt',
  'ioredis 5.6.1': 'ixol50g1ob qlfr2dg1oj',
  'ioredis 5.7.0': 'jgepxdgkj6 r45vuqgkje',
  'ioredis 5.8.0': 'lexpdnsxtn sv362iir6p',
  'ioredis 5.8.1': 'lexpdnsxtn sv362iir6p',
  'ioredis 5.8.2': 'jh3w7p2ahn qx9cwjs3up',
  'ioredis 5.9.0': 'hrzamfkdx3 nwqlpv2mzj',
  'ioredis 5.9.1': 'hcqjvbyo44 nhhuyrgx6k',
  'ioredis 5.9.2': 'hcqjvbyo44 nutpe3xsjm',
  'ioredis 5.9.3': 'gxlb87r2yn nfogqzq7e5',
  'ioredis 5.10.0': 'gxlb87r2yn nfogqzq7e5',
  'ioredis 5.10.1': 'gxlb87r2yn mfpt5zmsak',
  'ioredis 5.11.0': 'izwmx4xc0x oi14uwt1cu',
  'ioredis 5.11.1': 'jnpb427now pphx1s14ql',
  'ioredis 6.0.0': 'odf67yvoh6 srsby0akq6',
  'iovalkey 0.1.0': 'k026bsvwmw pjrei6htgq',
  'iovalkey 0.2.1': 'jhuljm2hf0 p1jtpzoe8u',
  'iovalkey 0.2.2': 'lqa6qpa0tu rohfy3uu5y',
  'iovalkey 0.3.1': 'j432onnf2k oalg9pt1ey',
  'iovalkey 0.3.2': 'j432onnf2k n4zi5wcxbu',
  'iovalkey 0.3.3': 'io07vs4466 mownd0tmfg',
  'iovalkey 0.4.0': 'kdylbkzuth qr58j2p86q',
  'redis-parser 3.0.0': 'fpdiscvzo',
  'standard-as-callback 2.1.0': '1is0mqvhzc',
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
