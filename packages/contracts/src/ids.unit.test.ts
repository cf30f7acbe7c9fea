import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bucketCount,
  DeviceId,
  decodeBase32,
  deviceBucket,
  encodeBase32,
  idBytes,
  NotificationId,
  newDeviceId,
  newNotificationId,
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

  test("sorts as text by the time it was made, over centuries", () => {
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

  test("base32 gives back every 16 bytes, in the order of the bytes", () => {
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

describe("a device's bucket", () => {
  test("never changes: it is stored with the device", () => {
    expect(
      ["dev_06bq4ghm31tz5d2ns8y7k9w0ac", "dev_01m7ynkt8nfzn8c29dy8hzwrtv"].map((id) => deviceBucket(id as DeviceId)),
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
      const bucket = deviceBucket(newDeviceId(new Date(1_800_000_000_000 + (index % 7))));
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    }
    expect(counts.size).toBe(bucketCount);
    // Twenty expected: a fair hash stays below three times that by many standard deviations.
    expect(Math.max(...counts.values())).toBeLessThan(60);
  });
});
