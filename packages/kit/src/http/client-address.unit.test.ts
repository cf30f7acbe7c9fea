import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { clientAddress, rateLimitKey } from "./address-limits.ts";

const from = (forwarded?: string): IncomingMessage => {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: "10.0.0.1" });
  const request = new IncomingMessage(socket);
  if (forwarded !== undefined) request.headers["x-forwarded-for"] = forwarded;
  return request;
};

test.each<[number, string | undefined, string]>([
  [0, undefined, "10.0.0.1"],
  [0, "203.0.113.9", "10.0.0.1"],
  [1, undefined, "10.0.0.1"],
  [1, "", "10.0.0.1"],
  [1, "203.0.113.9", "203.0.113.9"],
  [1, "192.0.2.1, 203.0.113.9", "203.0.113.9"],
  [2, "192.0.2.1,  203.0.113.9", "192.0.2.1"],
  [3, "192.0.2.1, 203.0.113.9", "192.0.2.1"],
  [1, "203.0.113.9:4711", "203.0.113.9"],
  [1, "[2001:db8::1]:4711", "2001:db8:0:0::/64"],
  [1, "2001:db8::1", "2001:db8:0:0::/64"],
  [1, "192.0.2.1, unknown", "10.0.0.1"],
  [1, "192.0.2.1,", "10.0.0.1"],
  [2, ",", "10.0.0.1"],
  [2, `${",".repeat(15_000)}203.0.113.9`, "10.0.0.1"],
])("behind %i proxies, with %j, it is %s", (proxies, forwarded, address) => {
  expect(clientAddress(from(forwarded), proxies)).toBe(address);
});

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
