import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { consume, defineHandler } from "@herald/bus";
import { newDeviceId, newNotificationId, OpenGroupV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { openTokens } from "./new-world.ts";

let system: GatewayTest;
let project: TestProject;
let stop: () => Promise<void>;
/** Every open in a command on the bus. */
const recorded: string[] = [];

beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
  const handler = defineHandler({
    durable: "analytics-open-groups",
    message: OpenGroupV1,
    handle: async ({ data }) => void recorded.push(...data.opens.map(({ deviceId }) => deviceId)),
  });
  const consuming = await consume(system.bus, [handler]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  stop = () => consuming.stop(2_000);
});
afterAll(async () => {
  await stop?.();
  await system?.stop();
});
beforeEach(() => {
  recorded.length = 0;
});

const newOpen = () => {
  const claim = {
    projectId: project.id,
    notificationId: newNotificationId(new Date()),
    deviceId: newDeviceId(new Date()),
    platform: "ios" as const,
  };
  return { ...claim, token: openTokens.sign(claim, new Date()) };
};
const open = ({ notificationId, token }: { notificationId: string; token: string }) =>
  system.call(`PUT /api/v1/notifications/${notificationId}/open`, { body: { project_id: project.id, token } });

const flood = process.env.HERALD_TEST_LONG ? 10_000 : 2_500;
// The flood, the gateway and its services share one process, so it must not fall behind by more than the timeout of requests.
const connections = 4;
/** Outstanding responses per connection. */
const ahead = 5;

/** Sends the same request repeatedly on one connection, many at a time. Returns the number of responses by status. */
const hammer = (request: string, times: number): Promise<Map<string, number>> =>
  new Promise((resolve, reject) => {
    const statuses = new Map<string, number>();
    const socket = connect(Number(new URL(system.address()).port), "127.0.0.1");
    let sent = 0;
    let answered = 0;
    let rest = "";
    const more = () => {
      const count = Math.min(times - sent, ahead - (sent - answered));
      sent += count;
      if (count > 0) socket.write(request.repeat(count));
    };
    socket.on("error", reject).on("connect", more);
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("HTTP/1.1 ");
      // The last status line may be incomplete.
      rest = `HTTP/1.1 ${lines.pop() ?? ""}`;
      const known = /^HTTP\/1\.1 (\d{3}) /.exec(rest);
      for (const line of [...lines.filter((one) => /^\d{3} /.test(one)), ...(known ? [known[1] ?? ""] : [])]) {
        const status = line.slice(0, 3);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        answered++;
      }
      if (known) rest = "";
      if (answered < times) more();
      else {
        socket.destroy();
        resolve(statuses);
      }
    });
  });

describe("the open route, which anybody can reach", () => {
  // Before the flood: afterwards the address is over its limit and gets 429 instead.
  test("reads no more of a body than an open has", async () => {
    const one = newOpen();
    const body = `{"project_id":"${project.id}","token":"${one.token}","x":"${"x".repeat(2_048)}"}`;
    const answer = await system.call(`PUT /api/v1/notifications/${one.notificationId}/open`, { body });
    expect(answer.status).toBe(413);
  });

  test(`leaves the other routes as they were under ${flood} forged opens, and true ones are all recorded`, async () => {
    const { notificationId } = newOpen();
    const forged = newOpen().token;
    const body = JSON.stringify({ project_id: project.id, token: forged });
    const request = [
      `PUT /api/v1/notifications/${notificationId}/open HTTP/1.1`,
      "Host: herald",
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      "",
      body,
    ].join("\r\n");
    const flooding = Promise.all(Array.from({ length: connections }, () => hammer(request, flood / connections)));
    let ended = false;
    void flooding.finally(() => {
      ended = true;
    });

    const answers: number[] = [];
    const opened: string[] = [];
    while (!ended) {
      const { token } = project;
      const one = newOpen();
      const notification = { title: "Hello", targets: ["all"] };
      const all = await Promise.all([
        system.call("GET /api/v1/devices", { token }),
        system.call("POST /api/v1/notifications", { token, body: { notification } }),
        open(one),
      ]);
      await delay(20); // the traffic's own pace, independent of the flood
      answers.push(...all.map(({ status }) => status));
      opened.push(one.deviceId);
    }
    const statuses = new Map<string, number>();
    for (const [status, count] of (await flooding).flatMap((one) => [...one]))
      statuses.set(status, (statuses.get(status) ?? 0) + count);
    expect((statuses.get("403") ?? 0) + (statuses.get("429") ?? 0)).toBe(flood);
    // A hundred per ten seconds get the reason; the rest get only Retry-After.
    expect(statuses.get("429")).toBeGreaterThan(flood / 2);
    expect([...new Set(answers)].toSorted()).toEqual([200, 202, 204]);
    await eventually(() => expect(recorded.toSorted()).toEqual(opened.toSorted()));
  }, 240_000);

  test("writes one true token once, however often it comes, and answers each", async () => {
    const one = newOpen();
    const answers = await Promise.all(Array.from({ length: 300 }, () => open(one)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
    const other = newOpen();
    expect((await open(other)).status).toBe(204);
    await eventually(() => expect(recorded).toContain(other.deviceId));
    expect(recorded.filter((id) => id === one.deviceId)).toHaveLength(1);
  });

  test("answers other methods, such as a link scanner's GET, with 405 and records nothing", async () => {
    const { notificationId, token } = newOpen();
    for (const method of ["GET", "POST", "DELETE"]) {
      const body = method === "POST" ? { body: { project_id: project.id, token } } : {};
      const answer = await system.call(`${method} /api/v1/notifications/${notificationId}/open?token=${token}`, body);
      expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 405, "OPTIONS, PUT"]);
    }
    expect(recorded).toEqual([]);
  });
});
