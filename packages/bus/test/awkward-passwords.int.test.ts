import type { BusUserName } from "@herald/bus/permissions";
import { expect, inject, test } from "vitest";
import { composeBroker, userNames } from "./compose-broker.ts";

const rounds = [
  ["12e", "12e4", "1234", "true", "$x", "two words", `"double" and 'single'`],
  // As `openssl rand -hex 32` may give them: digits and an e, digits alone, and what begins with a size.
  ["12345e67", `${"1234567890".repeat(6)}e123`, "9".repeat(64), "0e0", "1e999", "8kb4", "5"],
  ["back\\slash\\", "{a: b}", "[1, 2]", "a;b,c=d", "# none", "0x12k ", "ünï"],
];

test.for(rounds)("each user logs in with its password: %s, …", async (values, { skip }) => {
  const source = inject("heraldBrokerSource");
  if (source.kind !== "binary") return skip("the broker is not a process of ours");
  const passwords = Object.fromEntries(userNames.map((name, at) => [name, values[at]])) as Record<BusUserName, string>;
  const { start, logIn } = await composeBroker(source.path, passwords);
  await start();
  for (const name of userNames) await (await logIn(name)).close();
  await expect(logIn("gateway", "another")).rejects.toThrow(/authoriz/i);
});
