import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { type Provider, platformOf } from "@herald/contracts";
import { freePort } from "@herald/provision";
import { eventually, expectStatus } from "@herald/testing";
import { generate } from "selfsigned";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import { newAddress } from "./harness/seed.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";
import { createTinyproxy } from "./harness/tinyproxy.ts";

/**
 * The way out of a company's network through a real tinyproxy, with a password. Push services and a webhook have this machine's name, which
 * is no loopback address to Herald, so it reaches them through the proxy.
 */

const user = { user: "herald", password: "s3cret-word" };
const providers: readonly Provider[] = ["apns", "fcm", "webpush"];

let folder: string;
let proxyPort: number;
let proxy: Awaited<ReturnType<typeof createTinyproxy>>;
let system: System;
let hook: Awaited<ReturnType<typeof startHook>>;

/** A webhook with TLS. The services trust its certificate by the file. */
const startHook = async (certificateFile: string) => {
  const name = hostname();
  const { cert, private: key } = await generate([{ name: "commonName", value: name }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: name }] }],
  });
  await writeFile(certificateFile, cert);
  const types: string[] = [];
  const server = createServer({ cert, key }, async (request, response) => {
    types.push(JSON.parse(Buffer.concat(await request.toArray()).toString()).type);
    response.writeHead(204).end();
  });
  await once(server.listen(0, "0.0.0.0"), "listening");
  return {
    host: `${name}:${(server.address() as AddressInfo).port}`,
    types,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-proxy-"));
  proxyPort = await freePort();
  proxy = await createTinyproxy(folder, proxyPort);
  await proxy.start(user);
  const certificates = join(folder, "ca.pem");
  hook = await startHook(certificates);
  system = await startSystem({
    env: {
      HTTPS_PROXY: `http://${user.user}:${user.password}@127.0.0.1:${proxyPort}`,
      HERALD_SIMULATORS_HOST: "0.0.0.0",
      HERALD_SIMULATORS_PUBLIC_HOST: hostname(),
      NODE_EXTRA_CA_CERTS: certificates,
    },
  });
});
afterAll(async () => {
  await system?.stop();
  await hook?.stop();
  await proxy?.stop();
  await rm(folder, { recursive: true, force: true });
});
logOnFailure(() => system);

const settingsOf = async (id: string, provider: Provider) =>
  expectStatus(await system.admin(`GET /projects/${id}/providers/${provider}`), 200).body.data;
const portOf = async (id: string, provider: Provider) =>
  Number(new URL((await settingsOf(id, provider)).settings.endpoint).port);

test("pushes and webhooks go through the proxy, and status and doctor say so without its password", async () => {
  const project = await system.project("Behind a proxy", providers);
  for (const provider of providers) {
    const { ...address } = await newAddress(system.simulators, platformOf[provider]);
    const answer = await system.admin(`POST /projects/${project.id}/providers/${provider}/test`, { body: address });
    expect(expectStatus(answer, 200).body.data).toMatchObject({ result: "accepted" });
  }
  const created = await project.call("POST /webhooks", { body: { webhook: { url: `https://${hook.host}/` } } });
  const { id } = expectStatus(created, 201).body.data;
  expectStatus(await project.call(`POST /webhooks/${id}/ping`), 202);
  await eventually(() => expect(hook.types).toContain("io.herald.webhook.ping.v1"));

  const asked = await proxy.asked();
  for (const provider of providers) expect(asked).toContain(`${hostname()}:${await portOf(project.id, provider)}`);
  expect(asked).toContain(hook.host);

  const address = `127.0.0.1:${proxyPort}`;
  const status = await system.admin("GET /status");
  const shown = Object.fromEntries(
    status.body.data.services.map(({ name, replicas }: { name: string; replicas: { proxy?: string }[] }) => [
      name,
      replicas[0]?.proxy,
    ]),
  );
  expect(shown).toEqual({ gateway: address, registry: undefined, dispatch: address, analytics: address });
  const env = { HOME: folder, HERALD_URL: system.gateway, HERALD_ADMIN_TOKEN: system.adminToken };
  const { stdout } = await commandLine(env).herald("doctor");
  expect(stdout).toMatch(new RegExp(`dispatch .*reaches servers elsewhere through ${address}`));
  expect(JSON.stringify([status.body, stdout, system.logs.lines])).not.toContain(user.password);
});

test("a proxy that is down, wants another password or forbids the port delays pushes, says so, and loses none", async () => {
  const project = await system.project("Refused", ["apns"]);
  const apns = await portOf(project.id, "apns");
  const { device } = await project.register();
  const states = [
    { begin: () => proxy.stop(), reason: "proxy-unreachable", says: "ECONNREFUSED" },
    { begin: () => proxy.start({ ...user, password: "other" }), reason: "proxy-refused", says: "password (40" },
    { begin: () => proxy.start({ ...user, connectPorts: [443] }), reason: "proxy-refused", says: "(403)" },
  ];
  const sent: string[] = [];
  for (const { begin, reason, says } of states) {
    await begin();
    // Connections that the last state left open are closed with the proxy; new settings also end the pause between attempts.
    await system.putProvider(project, "apns");
    sent.push((await project.send({ title: reason, targets: [device.id] })).id);
    await eventually(
      async () => {
        const { status, problems } = await settingsOf(project.id, "apns");
        expect(status).toBe("active");
        expect(problems).toMatchObject([{ reason, detail: expect.stringContaining(says) }]);
      },
      { timeoutMs: 60_000 },
    );
  }
  await proxy.start({ ...user, connectPorts: [apns] });
  await system.putProvider(project, "apns");
  for (const id of sent) expect(await project.final(id, 60_000)).toMatchObject({ counts: { accepted: 1, failed: 0 } });
  const pushes = (await system.simulators.pushes({ provider: "apns" })).filter(({ token }) => token === device.token);
  expect(pushes).toHaveLength(states.length);
});
