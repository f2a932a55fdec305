/** Written by `npm run known-clients`: the releases that are known, and what they are recognized by. */

/** Digests of their files, and of those of the packages that they rest on (`filesDigest`, `fileDigest`). */
export const KNOWN_RELEASES: Readonly<Record<string, string>> = {
  'denque 2.1.0': 'QTpFM8Iu4yn_wd9c',
  'ioredis 5.0.0': 'BkH8Xz3KouL6GFyB',
  'ioredis 5.0.1': 'BkH8Xz3KouL6GFyB',
  'ioredis 5.0.2': 'BkH8Xz3KouL6GFyB',
  'ioredis 5.0.3': 'wFRfH_TJxkgjw1Tc',
  'ioredis 5.0.4': 'wFRfH_TJxkgjw1Tc',
  'ioredis 5.0.5': 'y_mLvB35Cr3FhH2A',
  'ioredis 5.0.6': 'y_mLvB35Cr3FhH2A',
  'ioredis 5.1.0': 'y_mLvB35Cr3FhH2A',
  'ioredis 5.2.0': 'Gec37K5d1TM5tAMa',
  'ioredis 5.2.1': 'Gec37K5d1TM5tAMa',
  'ioredis 5.2.2': 'Gec37K5d1TM5tAMa',
  'ioredis 5.2.3': 'Gec37K5d1TM5tAMa',
  'ioredis 5.2.4': '0wdofmj8sWHVxkDV',
  'ioredis 5.2.5': '0wdofmj8sWHVxkDV',
  'ioredis 5.2.6': 'CR_fvls2k817ia8A',
  'ioredis 5.3.0': 'dIjgexPn73MHT78E',
  'ioredis 5.3.1': '3sYKzW5HDT-SNFGD',
  'ioredis 5.3.2': '3sYKzW5HDT-SNFGD',
  'ioredis 5.4.0': 'rRQ1W1oI4DoBiPwu',
  'ioredis 5.4.1': 'jcjz1sQv3Ie9GrO1',
  'ioredis 5.4.2': 'LtWA2RFXFE4IZNLm',
  'ioredis 5.5.0': 'yCtdKSwfu9re_ngl',
  'ioredis 5.6.0': 'pOetGp9uRhvVQzhW',
  'ioredis 5.6.1': 'TZVwlOTOX5tCHvvE',
  'ioredis 5.7.0': 'PN6HJPELk4YNDUqx',
  'ioredis 5.8.0': '5quIUCJTuNYs0JNn',
  'ioredis 5.8.1': '5quIUCJTuNYs0JNn',
  'ioredis 5.8.2': 'gVXTiTKzB3wL8aFB',
  'ioredis 5.9.0': 'fHVHi0osXyviwTEp',
  'ioredis 5.9.1': 'oSRlhEohFBwtUxhO',
  'ioredis 5.9.2': 'x2ODDMCJ45Ev2K0t',
  'ioredis 5.9.3': 'Z6G9wZyfxMFGYdsK',
  'ioredis 5.10.0': 'Z6G9wZyfxMFGYdsK',
  'ioredis 5.10.1': 'p9AygIUSfcVRVcBe',
  'ioredis 5.11.0': '41uiOVdODpLZMd0K',
  'ioredis 5.11.1': '5GjHPuQhGVSMMt4t',
  'ioredis 6.0.0': 'GHjg5a6WEf1soSc6',
  'iovalkey 0.1.0': '7ZJtqaOYU06R0o3d',
  'iovalkey 0.2.1': '92QwphC8VHAE7QZc',
  'iovalkey 0.2.2': 'FVKHiEhCj9UOGxqy',
  'iovalkey 0.3.1': 'nwYGoNG8NIzsVdVi',
  'iovalkey 0.3.2': 'HxCWuq6hWHvDcHZd',
  'iovalkey 0.3.3': 'Qbc0q80pfuUV9gXW',
  'iovalkey 0.4.0': 'wjgkIw4SxCeAOc9a',
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
