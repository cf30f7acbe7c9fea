import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { test } from "./shared-system.ts";

const statuses = [300, 301, 302, 303, 305, 307, 308];

let system: System;
let inside: TcpServer;
let receiver: Server;
/** Where the redirects lead, and how many connections came there. */
let to: { readonly url: string; readonly headers: Record<string, string> };
let came = 0;
let asked = 0;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  inside = createTcpServer((socket) => {
    came++;
    socket.on("error", () => {}).destroy();
  });
  await once(inside.listen(0, "127.0.0.1"), "listening");
  const { port } = inside.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/`;
  to = {
    url,
    headers: {
      location: url,
      refresh: `0; url=${url}`,
      "alt-svc": `h2="127.0.0.1:${port}"`,
      link: `<${url}>; rel=preload`,
    },
  };
  receiver = createServer((_request, response) => {
    response.writeHead(statuses[asked++ % statuses.length] ?? 302, to.headers).end(to.url);
  });
  await once(receiver.listen(0, "127.0.0.1"), "listening");
});
afterAll(() => {
  receiver?.closeAllConnections();
  receiver?.close();
  inside?.close();
});
logOnFailure(() => system);

test("redirects to internal addresses are not followed", async ({ task }) => {
  const project = await system.project("Redirected", ["webpush"]);
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const hook = expectStatus(await project.call("POST /webhooks", { body: { webhook: { url } } }), 201).body.data.id;
  for (const _ of statuses) expectStatus(await project.call(`POST /webhooks/${hook}/ping`), 202);
  await system.simulators.script(
    statuses.map((status, at) => ({
      provider: "webpush" as const,
      tokenPrefix: `away${at}`,
      status,
      headers: to.headers,
    })),
  );
  for (const at of statuses.keys()) {
    const { endpoint, keys } = await system.simulators.subscribe(`away${at}`);
    await project.register({ platform: "web", token: endpoint, keys });
  }
  const { id } = await project.send({ title: "Away", targets: ["all"], ttl: 5 });
  await project.final(id, 60_000);
  expect((await project.deliveries(id)).filter(({ status }) => status === "accepted")).toEqual([]);
  await eventually(() => expect(asked).toBeGreaterThanOrEqual(statuses.length));
  expect(came).toBe(0);
  // It would be open for a redirect that came later.
  expectStatus(await project.call(`DELETE /webhooks/${hook}`), 204);
  show(task, {
    "redirects of a push service": statuses.length,
    "redirects of a receiver": asked,
    connections: came,
  });
});
