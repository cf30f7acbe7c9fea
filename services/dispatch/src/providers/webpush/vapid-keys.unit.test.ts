import { expect, test } from "vitest";
import { newVapidKeys, publicKeyOf } from "./vapid-keys.ts";

test("makes pairs that belong together, also those whose private key begins with a zero", () => {
  // One in 256 does: among so many there is one but for a chance in 2,500.
  for (let at = 0; at < 2_000; at++) {
    const { public_key, private_key } = newVapidKeys();
    expect(publicKeyOf(private_key)).toBe(public_key);
  }
});
