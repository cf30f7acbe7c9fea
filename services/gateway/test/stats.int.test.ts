import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
});
afterAll(() => system.stop());

const stats = (query: string) => system.call(`GET /api/v1/stats${query}`, { token: project.token });

describe("GET /stats", () => {
  test("defaults to the last 24 hours by the hour", async () => {
    const { status, body } = await stats("");
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ interval: "hour", time_zone: "UTC" });
    expect(Date.parse(body.data.to) - Date.parse(body.data.from)).toBe(86_400_000);
  });

  test("takes times with an offset", async () => {
    const { body } = await stats("?from=2030-01-01T00:00:00%2B01:00&to=2030-01-02T00:00:00Z&interval=day");
    expect(body.data).toMatchObject({ from: "2029-12-31T23:00:00.000Z", interval: "day" });
  });

  test.each([
    "?by=label:campaign&platform=ios",
    "?by=platform&label=campaign:a%2Fb%3Ac%20d",
    "?by=topic",
    "?by=kind",
    "?kind=order-shipped&platform=web",
  ])("takes %s", async (query) => {
    expect((await stats(query)).status).toBe(200);
  });

  test.each([
    ["?from=now&interval=week&time_zone=Mars&platform=symbian", ["from", "interval", "time_zone", "platform"]],
    ["?time_zone=%2B02:00", ["time_zone"]],
    ["?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z", ["from"]],
    ["?from=2030-01-01T00:00:00Z&to=2031-01-01T00:00:00Z", ["from"]],
    [
      "?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z&topic=news&notification=ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
      ["from", "topic"],
    ],
    ["?notification=ntf_1&topic=a%20b", ["notification", "topic"]],
    ["?kind=A&label=campaign&by=user", ["kind", "label", "by"]],
    ["?label=Campaign:x&by=label:", ["label", "by"]],
    ["?label=campaign:", ["label"]],
    ["?label=campaign:a&label=campaign:b", ["label"]],
    ["?kind=news&topic=news&label=campaign:spring", ["kind", "label"]],
    ["?by=kind&label=campaign:spring", ["by"]],
    ["?by=platform&platform=ios", ["by"]],
  ])("refuses %s with every problem at once", async (query, fields) => {
    const { status, body } = await stats(query);
    expect(status).toBe(422);
    expect(body.errors.map((error: string) => error.split(":", 1)[0]).toSorted()).toEqual(fields.toSorted());
  });
});
