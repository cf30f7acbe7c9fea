import type { LookupAddress } from "node:dns";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  checkPublicEndpoint,
  endpointProblem,
  isPublicAddress,
  notPublicText,
  publicLookup,
} from "./public-endpoint.ts";

describe("an endpoint", () => {
  it("of a public host is taken apart", () => {
    expect(checkPublicEndpoint("https://Hooks.example.com/a/b?c=%3d")).toEqual({
      ok: true,
      origin: "https://hooks.example.com",
      hostname: "hooks.example.com",
      path: "/a/b?c=%3d",
    });
  });

  it.each([
    "",
    "x",
    "//example.com/",
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "data:text/plain,x",
    "javascript:alert(1)",
    "https://",
    "https:///",
    "https://example.com:444/",
    "https://example.com:80/",
    "https://example.com:22/",
    "https://user@example.com/",
    "https://user:secret@example.com/",
    "https://:secret@example.com/",
    "https://example.com@127.0.0.1/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://0/",
    "https://0.0.0.0/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://017700000001/",
    "https://127.0.0.1./",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://8.8.8.8/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    "https://[2606:4700::1]/",
    "https://[::1]:443/",
    "https://localhost/",
    "https://localhost./",
    "https://LOCALHOST/",
    "https://localhost.localdomain./",
    "https://metadata/",
    "https://kubernetes/",
    "https://intranet:443/",
    "https://example.com./",
    "https://exa mple.com/",
    "https://example..com/",
    "https://.example.com/",
    "https://-example.com/",
    "https://exam_ple.com/",
    "https://%6c%6f%63%61%6c%68%6f%73%74/",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "https://１２７.０.０.１/",
    "https://127。0。0。1/",
    "https:\\\\127.0.0.1\\",
    "https://\t127.0.0.1/",
    "https://permanently-removed.invalid/",
    "https://a.localhost/",
    "https://printer.local/",
    "https://push.home.arpa/",
    "https://metadata.google.internal/",
    "https://a.onion/",
  ])("that could lead inside is refused: %j", (endpoint) => {
    expect(checkPublicEndpoint(endpoint)).toEqual({ ok: false, problem: expect.stringMatching(/^the endpoint/) });
  });

  it("of an exempt origin may be anywhere, but carries no user", () => {
    const exempt = "https://10.0.0.1:8443";
    expect(checkPublicEndpoint(`${exempt}/a?b`, exempt)).toMatchObject({ ok: true, origin: exempt, path: "/a?b" });
    expect(endpointProblem(`${exempt}/a`, { pushOrigin: exempt })).toBeUndefined();
    for (const other of [
      "https://u@10.0.0.1:8443/",
      "http://10.0.0.1:8443/",
      "https://10.0.0.1/",
      "https://a.local:8443/",
    ])
      expect(endpointProblem(other, { pushOrigin: exempt })).toMatch(/^no push can be sent there: the endpoint/);
  });

  it("of a project without settings is refused where no settings could help", () => {
    for (const possible of ["https://10.0.0.1:8443/a", "https://push.local/a", "https://push.example/a"])
      expect(endpointProblem(possible, undefined)).toBeUndefined();
    for (const other of ["https://permanently-removed.invalid/a", "http://push.example/a", "https://u@push.example/a"])
      expect(endpointProblem(other, undefined)).toMatch(/^no push can be sent there: the endpoint/);
  });

  it("may be any text at all", () => {
    // Not fc.webUrl(), which takes a second to list all characters.
    const rest = fc.string({ unit: fc.constantFrom(..."ab0/?#%&=.:@[]\\\t é漢🐢") });
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.tuple(fc.webAuthority(), rest).map(([host, path]) => `https://${host}${path}`),
          fc.string().map((text) => `https://${text}`),
        ),
        (endpoint) => {
          const checked = checkPublicEndpoint(endpoint);
          if (!checked.ok) return;
          expect(checked.origin).toMatch(/^https:\/\/[a-z0-9-]+(\.[a-z0-9-]+)+$/);
          expect(checked.path).toMatch(/^\/[\x21-\x7e]*$/);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

test.each([
  ["8.8.8.8", true],
  ["172.15.255.255", true],
  ["172.32.0.0", true],
  ["100.63.255.255", true],
  ["100.128.0.0", true],
  ["223.255.255.255", true],
  ["2606:4700:4700::1111", true],
  ["2a00:1450:4001::1", true],
  ["2001:4860:4860::8888", true],
  ["0.0.0.0", false],
  ["0.255.255.255", false],
  ["10.255.255.255", false],
  ["100.64.0.0", false],
  ["100.127.255.255", false],
  ["127.0.0.1", false],
  ["127.255.255.255", false],
  ["169.254.169.254", false],
  ["172.16.0.0", false],
  ["172.31.255.255", false],
  ["192.0.0.1", false],
  ["192.0.2.1", false],
  ["192.88.99.1", false],
  ["192.168.0.0", false],
  ["192.168.255.255", false],
  ["198.18.0.1", false],
  ["198.19.255.255", false],
  ["198.51.100.1", false],
  ["203.0.113.1", false],
  ["224.0.0.1", false],
  ["240.0.0.1", false],
  ["255.255.255.255", false],
  ["::", false],
  ["::1", false],
  ["::ffff:8.8.8.8", false],
  ["::ffff:127.0.0.1", false],
  ["64:ff9b::808:808", false],
  ["100::1", false],
  ["fe80::1", false],
  ["fec0::1", false],
  ["fc00::1", false],
  ["fdff::1", false],
  ["ff02::1", false],
  ["2001::1", false],
  ["2001:1ff:ffff::1", false],
  ["2001:db8::1", false],
  ["2002:7f00:1::", false],
  ["3fff::1", false],
  ["4000::1", false],
  ["localhost", false],
  ["", false],
])("%s is public: %s", (address, expected) => {
  expect(isPublicAddress(address)).toBe(expected);
});

describe("the look-up", () => {
  const resolving = (...addresses: string[]) =>
    publicLookup((_hostname, _options, callback) =>
      callback(
        null,
        addresses.map((address): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 })),
      ),
    );
  const ask = (lookup: ReturnType<typeof publicLookup>, all: boolean) =>
    new Promise((resolve) => {
      lookup("example.com", { all }, (error, address, family) =>
        resolve(error === null ? (all ? address : [address, family]) : error.message),
      );
    });

  it("gives the addresses that it checked, in the form that was asked for", async () => {
    const lookup = resolving("8.8.8.8", "2606:4700::1");
    expect(await ask(lookup, true)).toEqual([
      { address: "8.8.8.8", family: 4 },
      { address: "2606:4700::1", family: 6 },
    ]);
    expect(await ask(lookup, false)).toEqual(["8.8.8.8", 4]);
  });

  it.each([[["127.0.0.1"]], [["8.8.8.8", "127.0.0.1"]], [["2606:4700::1", "::1"]], [[]]])(
    "refuses %j: one that is not public is enough",
    async (addresses) => {
      expect(await ask(resolving(...addresses), true)).toBe(notPublicText);
      expect(await ask(resolving(...addresses), false)).toBe(notPublicText);
    },
  );

  it("hands on what the resolver could not find", async () => {
    const lookup = publicLookup((_hostname, _options, callback) => callback(new Error("ENOTFOUND"), []));
    expect(await ask(lookup, true)).toBe("ENOTFOUND");
  });
});
