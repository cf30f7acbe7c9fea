import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LookupAddress } from "node:dns";
import type { Socket } from "node:net";
import { sendRequest } from "@herald/bus";
import { newProjectId, newWebhookId, webhookRequests } from "@herald/contracts";
import { notPublicText } from "@herald/kit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startReceiver } from "./receiver.ts";
import { eventually, startWebhookTest, type WebhookTest } from "./webhook-fixture.ts";

/** The addresses of names, one per lookup; the last one repeats. */
const names = new Map<string, string[]>([
  ["inside.example", ["127.0.0.1"]],
  ["metadata.example", ["169.254.169.254"]],
  ["six.example", ["::1"]],
  ["mapped.example", ["::ffff:10.0.0.1"]],
  ["rebinding.example", ["93.184.216.34", "127.0.0.1"]],
]);
let system: WebhookTest;
/** Remote addresses of the HTTPS connections that were made. */
const connected: string[] = [];

const onSocket = (message: unknown) => {
  const { socket } = message as { socket: Socket };
  socket.once("connect", () => {
    if (socket.remotePort === 443) connected.push(socket.remoteAddress ?? "");
  });
};

beforeAll(async () => {
  subscribe("net.client.socket", onSocket);
  system = await startWebhookTest(
    { HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: "false" },
    {
      resolve: (hostname, _options, callback) => {
        const left = names.get(hostname);
        if (left === undefined) return callback(Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" }), []);
        const address = (left.length > 1 ? left.shift() : left[0]) ?? "";
        callback(null, [{ address, family: address.includes(":") ? 6 : 4 } satisfies LookupAddress]);
      },
    },
  );
});
afterEach(() => expect(connected).toEqual([]));
afterAll(async () => {
  unsubscribe("net.client.socket", onSocket);
  await system.stop();
});

const create = (url: string) =>
  sendRequest(system.bus, webhookRequests.create, {
    projectId: newProjectId(system.now()),
    webhookId: newWebhookId(system.now()),
    settings: { url },
  });

describe("a webhook's url", () => {
  test.each([
    ["http://hooks.example.com/", "the endpoint is not https"],
    ["https://hooks.example.com:8443/", "the endpoint's port is not 443"],
    ["https://user:secret@hooks.example.com/", "the endpoint carries a user"],
    ["https://127.0.0.1/", "the endpoint's host is an address"],
    ["https://2130706433/", "the endpoint's host is an address"],
    ["https://[::1]/", "the endpoint's host is an address"],
    ["https://[::ffff:169.254.169.254]/", "the endpoint's host is an address"],
    ["https://localhost/", "the endpoint's host is not a full name"],
    ["https://gateway/", "the endpoint's host is not a full name"],
    ["file:///etc/passwd", "the endpoint is not https"],
    ["https://inside.example/", notPublicText],
    ["https://metadata.example/latest/meta-data/", notPublicText],
    ["https://six.example/", notPublicText],
    ["https://mapped.example/", notPublicText],
  ])("that leads to a private address is refused when it is stored: %s", async (url, problem) => {
    await expect(create(url)).rejects.toMatchObject({
      code: "validation-failed",
      messages: [`webhook.url: ${problem}`],
    });
  });

  test("is checked again when it is changed", async () => {
    const hook = await system.hook("https://hooks.example.com/");
    const change = { projectId: hook.projectId, webhookId: hook.id, change: { url: "https://inside.example/" } };
    await expect(sendRequest(system.bus, webhookRequests.change, change)).rejects.toMatchObject({
      code: "validation-failed",
    });
    expect((await system.read(hook)).url).toBe("https://hooks.example.com/");
  });

  test("whose name leads to a private address later is never connected to", async () => {
    const hook = await system.hook("https://rebinding.example/");
    await system.topicCreated(hook.projectId);
    for (let attempt = 1; attempt <= 3; attempt++) {
      await eventually(async () =>
        expect((await system.messages(hook))[0]).toMatchObject({ attempt_count: attempt, last_error: notPublicText }),
      );
      system.forward(3_600_000);
    }
  });

  test("that was stored without the guard is not connected to with it", async () => {
    const receiver = await startReceiver();
    system.present();
    await system.restart({ HERALD_ANALYTICS_WEBHOOKS_ANY_HOST: "true" });
    const hook = await system.hook(receiver.url);
    await system.topicCreated(hook.projectId);
    await eventually(() => expect(receiver.posts).toHaveLength(1));
    await system.restart();
    const connections = receiver.connections();
    await system.topicCreated(hook.projectId);
    await eventually(async () =>
      expect((await system.messages(hook))[1]).toMatchObject({ last_error: "the endpoint is not https" }),
    );
    expect(receiver.connections()).toBe(connections);
    await receiver.stop();
  });
});
