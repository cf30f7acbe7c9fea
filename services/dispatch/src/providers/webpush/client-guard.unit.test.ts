import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import {
  createHttp1Transport,
  createHttp2Transport,
  createNegotiatedTransport,
  type TransportOptions,
} from "@herald/http2-client";
import { describe, expect, it, test } from "vitest";
import { at, createWebPushFixture, pushTo } from "../../../test/webpush-fixture.ts";

const { cleanups, connect, simulate } = createWebPushFixture();

describe("the guard", () => {
  /** A server in the private network, which must never get a connection. */
  async function inside() {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    cleanups.push(() => once(server.close(), "close"));
    return { port: (server.address() as AddressInfo).port, count: () => connections };
  }

  it("refuses internal addresses before any request", async () => {
    const simulators = await simulate();
    const opened: string[] = [];
    const client = connect(at(simulators), {
      anyHost: true,
      createTransport(options) {
        opened.push(options.origin);
        return createHttp2Transport(options);
      },
    });
    for (const endpoint of [
      "https://169.254.169.254/",
      "https://127.0.0.1/",
      "https://localhost/",
      "http://a.example/",
      "x",
    ])
      expect(await client.send(pushTo(simulators, "", { token: endpoint }))).toMatchObject({
        kind: "rejected",
        reason: "endpoint-forbidden",
        badToken: true,
      });
    expect(opened).toEqual([]);
  });

  it.each([
    ["HTTP/2", createHttp2Transport],
    ["HTTP/1.1", createHttp1Transport],
    ["whatever it speaks", createNegotiatedTransport],
  ])("refuses a name that leads inside at connect, also if it led outside before, by %s", async (_, create) => {
    const simulators = await simulate();
    const { port, count } = await inside();
    let asked = 0;
    const client = connect(
      {},
      {
        anyHost: true,
        // After a check that resolved a public address, the name now resolves to private addresses, only or among others.
        resolve(_hostname, _options, callback) {
          asked++;
          const addresses = [{ address: "127.0.0.1", family: 4 }];
          callback(null, asked % 2 === 0 ? addresses : [{ address: "93.184.216.34", family: 4 }, ...addresses]);
        },
        createTransport: (options: TransportOptions) =>
          create({ ...options, origin: `https://rebinding.example:${port}` }),
      },
    );
    for (let round = 0; round < 5; round++) {
      const outcome = await client.send(pushTo(simulators, "", { token: "https://rebinding.example/push" }));
      expect(outcome).toMatchObject({ kind: "rejected", reason: "endpoint-forbidden" });
      // The name may lead elsewhere tomorrow.
      expect(outcome).not.toHaveProperty("badToken");
    }
    expect(asked).toBeGreaterThan(0);
    expect(count()).toBe(0);
  });

  it("sends to the browsers' push services alone unless the operator allows others", async () => {
    const simulators = await simulate();
    const client = connect({});
    expect(await client.send(pushTo(simulators, "", { token: "https://push.example.com/x" }))).toEqual({
      kind: "rejected",
      reason: "endpoint-forbidden",
      notSent: true,
      providerReason: "the endpoint's host is not a known push service",
    });
  });
});

test("keeps connections to a bounded number of push services", async () => {
  const simulators = await simulate();
  let open = 0;
  const client = connect(
    {},
    {
      anyHost: true,
      createTransport() {
        open++;
        return {
          send: async () => ({ kind: "answered", status: 201, headers: {}, body: "" }),
          close: async () => void open--,
        };
      },
    },
  );
  const sent = pushTo(simulators);
  for (let index = 0; index < 100; index++) await client.send({ ...sent, token: `https://host-${index}.example/` });
  expect(open).toBeLessThanOrEqual(32);
  await client.close();
  expect(open).toBe(0);
});
