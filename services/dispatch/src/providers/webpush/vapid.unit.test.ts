import { expect, test } from "vitest";
import { newVapidKeys, publicKeyOf } from "./settings.ts";

test("makes pairs that belong together, also those whose private key begins with a zero", () => {
  // One in 256 does, so the chance that 2,000 keys contain none is 1 in 2,500.
  for (let at = 0; at < 2_000; at++) {
    const { public_key, private_key } = newVapidKeys();
    expect(publicKeyOf(private_key)).toBe(public_key);
  }
});
