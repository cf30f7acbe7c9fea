import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { createLogger, createOutboundProxy } from "@herald/kit";
import { startConnectProxy } from "@herald/testing";
import { generate } from "selfsigned";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createIdentityProvider } from "./identity-provider.ts";

/** An identity provider that only the proxy can reach. What a real one says is tried by sign-in.int.test.ts. */

const issuer = "https://id.example.com";
const usual = getCACertificates();
const asked: string[] = [];
let server: ReturnType<typeof createServer>;
beforeAll(async () => {
  const { cert, private: key } = await generate([{ name: "commonName", value: "id.example.com" }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "id.example.com" }] }],
  });
  setDefaultCACertificates([...usual, cert]);
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
  };
  server = createServer({ cert, key }, async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    asked.push(`${request.method} ${request.url} ${new URLSearchParams(body).get("code") ?? ""}`.trim());
    const isToken = request.url === "/token";
    response.writeHead(isToken ? 400 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(isToken ? { error: "invalid_grant" } : metadata));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
});
afterAll(async () => {
  setDefaultCACertificates(usual);
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const providerThrough = async (answer?: string) => {
  const { port } = server.address() as AddressInfo;
  const proxy = await startConnectProxy({ answer: () => answer, portOf: () => port });
  ends.push(proxy.stop);
  const provider = createIdentityProvider({
    ...{ issuer, clientId: "herald", clientSecret: "secret", callback: "https://herald.example.com/callback" },
    ...{ home: "https://herald.example.com/", scopes: "openid", groupsClaim: "groups", now: () => new Date() },
    proxy: createOutboundProxy({ HTTPS_PROXY: proxy.url, NO_PROXY: "" }),
    log: createLogger({ service: "test", level: "silent" }),
  });
  return { proxy, provider };
};

test("metadata and tokens are asked for through the proxy", async () => {
  const { proxy, provider } = await providerThrough();
  const { address, flow } = await provider.begin();
  expect(address).toContain(`${issuer}/authorize?`);
  const query = new URLSearchParams({ code: "c1", state: flow.state, iss: issuer });
  // The answer of the provider, not of the proxy.
  await expect(provider.finish(`${query}`, flow, () => {})).rejects.toMatchObject({ code: "sign-in-expired" });
  expect(asked).toEqual(["GET /.well-known/openid-configuration", "POST /token c1"]);
  expect(proxy.asked.map(({ authority }) => authority)).toEqual(["id.example.com:443", "id.example.com:443"]);
});

test.each(["HTTP/1.1 403 Filtered\r\n\r\n{}", "HTTP/1.1 407 Login\r\n\r\n", "HTTP/1.1 502 Bad\r\n\r\n", "hello\r\n"])(
  "a proxy that answers %j is named as the reason",
  async (answer) => {
    const { provider } = await providerThrough(answer);
    await expect(provider.begin()).rejects.toMatchObject({
      code: "identity-provider-unavailable",
      message: expect.stringContaining("cannot be reached through the proxy"),
    });
  },
);
