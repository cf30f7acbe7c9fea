import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DeliverBatchV1 } from "./deliver-batch.ts";
import { DeliveryAcceptedV1 } from "./events.ts";
import { newDeviceId, newNotificationId, newProjectId } from "./ids.ts";
import { audienceRequests } from "./requests/audience.ts";

const now = new Date("2030-01-01T00:00:00Z");
const device = { id: newDeviceId(now), token: "ab12", tokenAt: 1_700_000_000_000 };
const keys = { p256dh: "B".repeat(87), auth: "a".repeat(22) };
const batch = {
  batchId: "ntf/0/0",
  projectId: newProjectId(now),
  notificationId: newNotificationId(now),
  lane: "broadcast",
  platform: "ios",
  devices: [device],
};
const isPlain = (data: unknown) => DeliverBatchV1.isPlain?.(data);

/** A value that the schema accepts, or almost accepts. */
const field = fc.oneof(
  fc.constantFrom(device.id, "token", "fid", "production", "sandbox", "ios", "broadcast", keys, { ...keys, more: 1 }),
  fc.constantFrom(undefined, null, true, 0, -0, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1, [], {}),
  fc.string(),
  fc.integer(),
);
const anyDevice = fc.oneof(
  fc.record({
    ...Object.fromEntries(Object.entries(device).map(([name, good]) => [name, fc.oneof(fc.constant(good), field)])),
  }),
  fc
    .dictionary(
      fc.constantFrom(
        ...["environment", "tokenKind", "keys", "vapidKeyId", "locale", "id", "__proto__", "x"],
        ...["app", "capabilities", "values", "off", "zone", "quiet", "userId"],
      ),
      field,
    )
    .map((more) => ({ ...device, ...more })),
  field,
);
const anyBatch = fc
  .tuple(
    fc.array(anyDevice, { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...Object.keys(batch), "more"), field, { maxKeys: 1 }),
  )
  .map(([devices, wrong]) => ({ ...batch, devices, ...wrong }));

describe("a plain batch", () => {
  test.each([
    ["three fields a device", batch],
    [
      "all that a phone may have",
      { ...batch, devices: [{ ...device, environment: "sandbox", tokenKind: "fid", locale: "de" }] },
    ],
    ["a browser's keys", { ...batch, devices: [{ ...device, keys, vapidKeyId: "k" }] }],
    ["no devices", { ...batch, devices: [] }],
  ])("has %s", (_, data) => {
    expect(isPlain(data)).toBe(true);
  });

  test.each([
    ["a field that the schema strips", { ...batch, more: 1 }],
    ["a device's field that the schema strips", { ...batch, devices: [{ ...device, more: 1 }] }],
    ["a device without a token", { ...batch, devices: [{ id: device.id, tokenAt: 1 }] }],
    ["another id", { ...batch, devices: [{ ...device, id: batch.projectId }] }],
    ["a time in pieces", { ...batch, devices: [{ ...device, tokenAt: 1.5 }] }],
    ["an environment that is none", { ...batch, devices: [{ ...device, environment: "test" }] }],
    ["an app without an id", { ...batch, devices: [{ ...device, app: "" }] }],
  ])("has not %s", (_, data) => {
    expect(isPlain(data)).toBe(false);
  });

  test("may be an event about devices, which are ids", () => {
    const event = {
      project_id: batch.projectId,
      notification_id: batch.notificationId,
      batch_id: batch.batchId,
      platform: batch.platform,
      at: now.toISOString(),
      devices: [device.id],
    };
    expect(DeliveryAcceptedV1.isPlain?.(event)).toBe(true);
    expect(DeliveryAcceptedV1.schema.parse(event)).toEqual(event);
    for (const wrong of [{ devices: [batch.projectId] }, { more: 1 }, { at: "now" }, { devices: undefined }])
      expect(DeliveryAcceptedV1.isPlain?.({ ...event, ...wrong })).toBe(false);
  });

  test("is what the schema takes as it is, whatever comes", () => {
    let plain = 0;
    fc.assert(
      fc.property(fc.oneof(anyBatch, fc.anything()), (data) => {
        if (!isPlain(data)) return;
        plain++;
        expect(DeliverBatchV1.schema.parse(data)).toEqual(data);
      }),
      { numRuns: 2_000 },
    );
    expect(plain).toBeGreaterThan(20);
  });
});

describe("plain audiences of sends", () => {
  const ios = { platform: "ios", devices: [device] };
  const audience = { batches: [ios, { platform: "ios", provider: "fcm", devices: [] }], unmatched: ["user:u"] };
  const accepts = (...sends: unknown[]) => audienceRequests.resolve.isPlain?.({ sends });

  test.each([
    ["batches and unmatched targets", [audience]],
    ["null", [null, audience]],
  ])("have %s", (_, sends) => {
    expect(accepts(...sends)).toBe(true);
    expect(audienceRequests.resolve.answer.parse({ sends })).toEqual({ sends });
  });

  test.each<[string, unknown]>([
    ["a field that the schema strips", { ...audience, more: 1 }],
    ["a batch's field that the schema strips", { ...audience, batches: [{ ...ios, more: 1 }] }],
    ["a device's field that the schema strips", { ...audience, batches: [{ ...ios, devices: [{ ...device, x: 1 }] }] }],
    ["another platform", { ...audience, batches: [{ ...ios, platform: "tv" }] }],
    ["another provider", { ...audience, batches: [{ ...ios, provider: "sms" }] }],
    ["no list of what is unmatched", { batches: [ios] }],
  ])("have not %s", (_, one) => {
    expect(accepts(audience, one)).toBe(false);
  });

  test("are what the schema takes as it is, whatever comes", () => {
    const anyOne = fc.oneof(
      fc.record({
        batches: fc.array(
          fc.record(
            {
              platform: fc.constantFrom("ios", "web", "tv"),
              provider: fc.constantFrom("fcm", "sms"),
              devices: fc.array(anyDevice, { maxLength: 2 }),
            },
            { requiredKeys: ["platform", "devices"] },
          ),
          { maxLength: 2 },
        ),
        unmatched: fc.array(fc.oneof(fc.constant("user:u"), field), { maxLength: 1 }),
      }),
      fc.constantFrom(null, audience, { ...audience, more: 1 }),
      fc.anything(),
    );
    let withDevices = 0;
    fc.assert(
      fc.property(fc.array(anyOne, { maxLength: 2 }), (sends) => {
        if (!accepts(...sends)) return;
        expect(audienceRequests.resolve.answer.parse({ sends })).toEqual({ sends });
        if (JSON.stringify(sends).includes(device.id)) withDevices++;
      }),
      { numRuns: 2_000 },
    );
    expect(withDevices).toBeGreaterThan(20);
  });
});
