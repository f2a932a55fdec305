/** Written by `npm run known-clients`: the releases that `recognize.ts` knows, and what it knows them by. */

/** By two of `filesDigest`: of what a client rests on, and a Cluster. */
export const KNOWN_RELEASES: Readonly<Record<string, readonly string[]>> = {
  'nlhaa6pm3s smilrh663u': ['ioredis 5.0.0', 'ioredis 5.0.1', 'ioredis 5.0.2'],
  'nhk78kv1or silipvblot': ['ioredis 5.0.3', 'ioredis 5.0.4'],
  'mmqlon4u3p rnrx5xle3r': ['ioredis 5.0.5', 'ioredis 5.0.6', 'ioredis 5.1.0'],
  'lbes214rv7 qcg3jblbv9': ['ioredis 5.2.0', 'ioredis 5.2.1', 'ioredis 5.2.2', 'ioredis 5.2.3'],
  'm6bgs7l6k6 r7cs9i1qk8': ['ioredis 5.2.4', 'ioredis 5.2.5'],
  'nxpz7o1kgk syraoyi4gm': ['ioredis 5.2.6'],
  'jf20byuput og3bt9b9uv': ['ioredis 5.3.0'],
  'm6ajk4qzar r7bv1f7jat': ['ioredis 5.3.1', 'ioredis 5.3.2'],
  'lx6u0j90fq rnqof7u1m2': ['ioredis 5.4.0'],
  'ljwpwi44b1 ragkb6p5hd': ['ioredis 5.4.1'],
  'lybf4a8oq9 rov9iytpwl': ['ioredis 5.4.2'],
  'lybf4a8oq9 qpshwyuk46': ['ioredis 5.5.0'],
  'lybf4a8oq9 ruusx6kjir': ['ioredis 5.6.0'],
  'lybf4a8oq9 tm2l1n8oqh': ['ioredis 5.6.1'],
  'mh1jwn97l4 u4spu097lc': ['ioredis 5.7.0'],
  'ofkjcxlkvl vvq01sbe8n': ['ioredis 5.8.0', 'ioredis 5.8.1'],
  'mhqq6yuxjl txw6vtkqwn': ['ioredis 5.8.2'],
  'ksm4lpd0z1 qxdfp4va1h': ['ioredis 5.9.0'],
  'kdddulrb62 qi4oy19k8i': ['ioredis 5.9.1'],
  'kdddulrb62 qvgjddqflk': ['ioredis 5.9.2'],
  'jy857hjq0l qgbaq9iug3': ['ioredis 5.9.3', 'ioredis 5.10.0'],
  'jy857hjq0l pgcn59ffci': ['ioredis 5.10.1'],
  'm0jgwepz2v rinyu6loes': ['ioredis 5.11.0'],
  'moc53c0aqu sq4r11trsj': ['ioredis 5.11.1'],
  'qycmogbfjg vcpsehqbsg': ['ioredis 6.0.0'],
  'n0p0b2ojou ske8hgagio': ['iovalkey 0.1.0'],
  'mihfivv4gy s26np9h1as': ['iovalkey 0.2.1'],
  'oqx0pz2nvs up49xdnh7w': ['iovalkey 0.2.2'],
  'm4pwnxg24i rb8a8zlogw': ['iovalkey 0.3.1'],
  'm4pwnxg24i q5mc565kds': ['iovalkey 0.3.2'],
  'lon1v1wr84 ppjhcam9he': ['iovalkey 0.3.3'],
  'nelfaushvf trs2ichv8o': ['iovalkey 0.4.0'],
};

/** Digests of the methods of all of them, of four characters each (`methodDigest`). */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(
  (
    '-XXu1Xfp2cR83QkR4Fsq4Wlk4ddB5Fdp5Wem5mbq5n-16OET6cmW80Xq88nS8Orc8RqC96819AC-9o2O9o7z9w9AACFcAQ5QAQHiBSAFBiPx' +
    'C8DxCKpeCQhuCjL1DEAKDPNLDSEQDgoMDsX-DxSMEYlJEqflF2OzFCF4FxueG-wrGJ0RGNieGTPdGhc4H48sHq7BIjQEJDBYJI_bJcSzK8-R' +
    'Ka25LRLoLXrHLxj1MDkcMWMVN3PpN5tvOPNoOXrIOjHBP1AtPnweQ9ypQs_vRJPmRb1mRcmyRzPbSJ3USoxdSy8iT9l6TaVkUCHcUkWkUwVW' +
    'WvKqX9YSXmLQYKDaYhkRZ-59ZaJzZg4__B2p_BEOa2MJaTf_aXRCbv3Vc3SycREpcYoccez-crj8dHXye3lKe63we_yXepuXfIQgfbVOfleJ' +
    'fmgrgG_9gYfUhGxKin1njF0YkBzHkLCtkXmfkx4jlQ_tmceCoW_TqPBQqbz5qumrrF89rdP4rfWQs4H2sNwesjDHt84Ct9bAtYKttmr-u1h8' +
    'uq-quuYsv4pQvPSFvZmYv_Avwp_jx4QvyCE5ybMDybSyz2xszNRczhhP'
  ).match(/.{4}/g),
);
