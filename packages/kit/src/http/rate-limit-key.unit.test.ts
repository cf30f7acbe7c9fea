import { expect, test } from "vitest";
import { rateLimitKey } from "./rate-limit-key.ts";

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["::FFFF:203.0.113.9", "203.0.113.9"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0db8:0001:0002:ffff::", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:db8:1:2::1%eth0", "2001:db8:1:2::/64"],
  ["::1", "0:0:0:0::/64"],
  ["", ""],
  ["not an address", "not an address"],
])("%s counts as %s", (address, key) => {
  expect(rateLimitKey(address)).toBe(key);
});

test("neighbours of one network are one, neighbours of two are two", () => {
  expect(rateLimitKey("2001:db8:1:2::1")).toBe(rateLimitKey("2001:db8:1:2:ffff:ffff:ffff:ffff"));
  expect(rateLimitKey("2001:db8:1:2::1")).not.toBe(rateLimitKey("2001:db8:1:3::1"));
});
