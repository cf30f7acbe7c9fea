import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  bucketCount,
  bucketOf,
  DeviceId,
  decodeBase32,
  encodeBase32,
  firstWebhookMessageId,
  idBytes,
  idTime,
  maxGroupSize,
  NotificationId,
  newDeviceId,
  newNotificationId,
  newNotificationIds,
  newProjectId,
  newTokenId,
  newTopicId,
  newWebhookId,
  newWebhookMessageId,
  ProjectId,
  sendGroupOf,
  TokenId,
  TopicId,
  WebhookId,
  WebhookMessageId,
  webhookMessageId,
} from "./ids.ts";

describe("an id", () => {
  test("is its prefix and a UUIDv7 in base32", () => {
    const id = newNotificationId(new Date("2030-01-01T00:00:00Z"));
    expect(NotificationId.parse(id)).toBe(id);
    const uuid = Buffer.from(idBytes(id)).toString("hex");
    expect(Number.parseInt(uuid.slice(0, 12), 16)).toBe(Date.parse("2030-01-01T00:00:00Z"));
    expect(uuid[12]).toBe("7");
    expect(["8", "9", "a", "b"]).toContain(uuid[16]);
  });

  test("sorts as text by its creation time, over centuries", () => {
    const times = ["1970-01-01", "2026-11-21", "2026-11-22", "2262-04-11"].map((day) => new Date(day));
    const ids = times.map((time) => newDeviceId(time));
    expect(ids.toSorted()).toEqual(ids);
  });

  test.each([
    "",
    "dev_",
    "dev_06bq4ghm31tz5d2ns8y7k9w0a",
    "dev_06bq4ghm31tz5d2ns8y7k9w0acx",
    "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
    "dev_86bq4ghm31tz5d2ns8y7k9w0ac",
    "dev_06BQ4GHM31TZ5D2NS8Y7K9W0AC",
    "dev_06bq4ghm31tz5d2ns8y7k9w0i*",
    "dev_06bq4ghm31tz5d2ns8y7k9w0ac\n",
    ".",
    42,
    { $ne: null },
    null,
  ])("%j is not a device's", (value) => {
    const parsed = DeviceId.safeParse(value);
    expect(parsed.error?.issues.map(({ message }) => message)).toEqual(["must be a device id: dev_ and 26 characters"]);
  });

  test("base32 decodes to the same 16 bytes and keeps their order", () => {
    const sixteen = fc.uint8Array({ minLength: 16, maxLength: 16 });
    fc.assert(
      fc.property(sixteen, sixteen, (one, other) => {
        expect(decodeBase32(encodeBase32(one))).toEqual(one);
        expect(encodeBase32(one)).toHaveLength(26);
        expect(Math.sign(encodeBase32(one) < encodeBase32(other) ? -1 : 1)).toBe(
          Buffer.compare(one, other) < 0 ? -1 : 1,
        );
      }),
    );
  });
});

describe("every kind of id", () => {
  const kinds = [
    ["prj", ProjectId, newProjectId],
    ["dev", DeviceId, newDeviceId],
    ["top", TopicId, newTopicId],
    ["ntf", NotificationId, newNotificationId],
    ["tok", TokenId, newTokenId],
    ["whk", WebhookId, newWebhookId],
    ["msg", WebhookMessageId, newWebhookMessageId],
  ] as const;

  test.each(kinds)("%s: has its prefix, its time, and is no other kind", (prefix, schema, make) => {
    const at = new Date("2030-01-31T09:00:00.123Z");
    const [id, another] = [make(at), make(at)];
    expect(id.slice(0, 4)).toBe(`${prefix}_`);
    expect(idTime(id)).toEqual(at);
    expect(another).not.toBe(id);
    for (const [, other] of kinds) expect(other.safeParse(id).success).toBe(other === schema);
  });

  test.each(kinds)("%s: has a pattern that accepts what the schema accepts", (_, schema, make) => {
    const { type, pattern = "", examples } = z.toJSONSchema(schema, { unrepresentable: "any" });
    expect(type).toBe("string");
    const [example] = z.tuple([z.string()]).parse(examples);
    expect(schema.parse(example)).toBe(example);
    for (const id of [example, make(new Date())]) expect(id).toMatch(new RegExp(pattern));
    for (const wrong of [example.slice(1), `${example}0`, example.toUpperCase(), "", 7])
      expect([new RegExp(pattern).test(String(wrong)), schema.safeParse(wrong).success]).toEqual([false, false]);
  });

  test("has 74 random bits beside the time", () => {
    const at = new Date();
    const ids = Array.from({ length: 200 }, () => idBytes(newDeviceId(at)));
    for (let byte = 6; byte < 16; byte++) {
      const seen = new Set(ids.map((bytes) => bytes[byte]));
      // The version leaves four random bits in byte 6, the variant six in byte 8.
      expect(seen.size).toBeGreaterThan(byte === 6 ? 8 : 32);
    }
  });
});

describe("the id of a webhook's message", () => {
  const webhook = "whk_06bq4ghm31tz5d2ns8y7k9w0ac";
  const at = new Date("2030-01-31T09:00:00.000Z");

  test("is always the same for one webhook and event, and different for another", () => {
    const id = webhookMessageId(webhook, "evt-1", at);
    expect(id).toMatchInlineSnapshot(`"msg_01q5vk5qm0fzfaepv4h79zxhw9"`);
    expect(WebhookMessageId.parse(id)).toBe(id);
    expect(idTime(id)).toEqual(at);
    expect(webhookMessageId(webhook, "evt-2", at)).not.toBe(id);
    expect(webhookMessageId("whk_06bq4ghm31tz5d2ns8y7k9w0ad", "evt-1", at)).not.toBe(id);
  });

  test("is not below the first of its time, and below that of a millisecond later", () => {
    const first = firstWebhookMessageId(at);
    expect(WebhookMessageId.parse(first)).toBe(first);
    expect(idTime(first)).toEqual(at);
    const ids = Array.from({ length: 100 }, (_, event) => webhookMessageId(webhook, `evt-${event}`, at));
    for (const id of ids) {
      expect(id >= first).toBe(true);
      expect(id < firstWebhookMessageId(new Date(at.getTime() + 1))).toBe(true);
    }
  });
});

describe("a device's bucket", () => {
  test("never changes: it is stored with the device", () => {
    expect(
      ["dev_06bq4ghm31tz5d2ns8y7k9w0ac", "dev_01m7ynkt8nfzn8c29dy8hzwrtv"].map((id) => bucketOf(id as DeviceId)),
    ).toMatchInlineSnapshot(`
      [
        2038,
        4048,
      ]
    `);
  });

  test("spreads devices that registered together", () => {
    const counts = new Map<number, number>();
    for (let index = 0; index < bucketCount * 20; index++) {
      const bucket = bucketOf(newDeviceId(new Date(1_800_000_000_000 + (index % 7))));
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    }
    // Twenty are expected: a fair hash leaves next to no bucket empty, and fills none three times.
    expect(counts.size).toBeGreaterThan(bucketCount - 10);
    expect(Math.max(...counts.values())).toBeLessThan(60);
  });
});

describe("ids of a group", () => {
  const now = new Date("2030-01-01T00:00:00Z");

  test.each([1, 2, 100, maxGroupSize])(
    "%i of them are different, of their time, and lead to the same group",
    (count) => {
      const ids = newNotificationIds(now, count);
      expect(new Set(ids).size).toBe(count);
      for (const id of ids) expect([NotificationId.parse(id), idTime(id)]).toEqual([id, now]);
      expect(new Set(ids.map(sendGroupOf)).size).toBe(1);
    },
  );

  test("differ in group from ids of another group", () => {
    const [one, other] = [newNotificationIds(now, 3), newNotificationIds(now, 3)];
    expect(sendGroupOf(one[0] ?? "ntf_")).not.toBe(sendGroupOf(other[0] ?? "ntf_"));
  });

  test("are refused when one byte cannot distinguish them", () => {
    expect(() => newNotificationIds(now, maxGroupSize + 1)).toThrow(RangeError);
  });
});
