/** Addresses that only internal hosts can reach, and names that resolve to them. */

/** A public address without a host: connections to it fail. */
export const nowhere = "2000::1";

const insideAddresses: readonly string[] = [
  ...["127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1"],
  ...["169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "192.0.2.2", "198.18.0.1", "224.0.0.1"],
  ...["255.255.255.255", "240.0.0.1", "::1", "::", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe"],
  ...["64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::1", "fe80::1"],
  ...["fec0::1", "fc00::1", "fd00::2", "fd00:ec2::254", "ff02::1", "100::1", "2001:db8::1", "3fff::1", "5f00::1"],
];

const domain = "hostile.example";

/** How each name resolves: the first time, the second, and so on. */
export const hostileNames: Readonly<Record<string, readonly (readonly string[])[]>> = {
  ...Object.fromEntries(insideAddresses.map((address, at) => [`inside-${at}.${domain}`, [[address]]])),
  [`mixed.${domain}`]: [[nowhere, "127.0.0.1"]],
  [`mixed-first.${domain}`]: [["127.0.0.1", nowhere]],
  [`rebound.${domain}`]: [[nowhere], ["127.0.0.1"]],
  [`rebound-late.${domain}`]: [[nowhere], [nowhere], ["127.0.0.1"]],
  [`rebound-six.${domain}`]: [[nowhere], ["::1"]],
  [`rebound-mapped.${domain}`]: [[nowhere], ["::ffff:127.0.0.1"]],
  [`rebound-mixed.${domain}`]: [[nowhere], [nowhere, "169.254.169.254"]],
  [`nobody.${domain}`]: [[]],
};

/** Internal hosts in all spellings that URLs allow. */
const hosts: readonly string[] = [
  ...[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0",
    "0.0.0.0",
    "127.0.0.1.",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
  ],
  ...[
    "0177.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "127.000.000.001",
    "127.0.0.1.nip.io.",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
  ],
  ...["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "100.100.100.200", "192.0.2.2", "8.8.8.8"],
  ...[
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
  ],
  ...["[2002:7f00:1::]", "[2001:0:7f00:1::1]", "[fe80::1]", "[fd00::2]", "[fd00:ec2::254]", "[2606:4700::1]"],
  ...[
    "localhost",
    "LOCALHOST",
    "localhost.",
    "localhost.localdomain",
    "ip6-localhost",
    "metadata",
    "kubernetes.default.svc.",
  ],
  ...[
    "metadata.google.internal.",
    "①②⑦.⓪.⓪.①",
    "１２７.０.０.１",
    "127。0。0。1",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "loc%61lhost",
    "%31%32%37.0.0.1",
  ],
  ...[
    "user@127.0.0.1",
    "user:secret@127.0.0.1",
    "example.com@127.0.0.1",
    "example.com%40127.0.0.1",
    "127.0.0.1#@example.com",
  ],
  ...["127.0.0.1\\@example.com", "127.0.0.1%00.example.com", "127.0.0.1%23.example.com", "example.com..", ".localhost"],
];

/** URLs to internal hosts that an attacker may give for a subscription or a webhook. `port` has a listener. */
export const insideUrls = (port: number): string[] => [
  ...hosts.flatMap((host) => [
    `https://${host}/`,
    `https://${host.replace(/([#\\].*)?$/, (tail) => `:${port}${tail}`)}/x`,
  ]),
  ...Object.keys(hostileNames).map((name) => `https://${name}/latest/meta-data/`),
  ...Object.keys(hostileNames).map((name) => `https://${name}:${port}/`),
  ...[
    "http://127.0.0.1/",
    `http://127.0.0.1:${port}/`,
    `ftp://127.0.0.1:${port}/`,
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
  ],
  ...[
    `https:127.0.0.1:${port}`,
    `https:\\\\127.0.0.1:${port}\\`,
    `//127.0.0.1:${port}/`,
    `https://\t127.0.0.1:${port}/`,
  ],
  ...[
    `unix:/var/run/docker.sock`,
    `data:text/plain,x`,
    `javascript:alert(1)`,
    `nats://127.0.0.1:4222/`,
    `https:///127.0.0.1/`,
  ],
];
