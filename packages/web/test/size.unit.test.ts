import { join } from "node:path";
import { bundleWebKit } from "@herald/bundle";
import { expect, test } from "vitest";

const bytes = { "herald.js": 12_000, "herald-worker.js": 6_000 };

test("what a site loads stays small, and a worker is a script that another can import", async () => {
  const kit = await bundleWebKit(join(import.meta.dirname, "../../.."));
  for (const [name, max] of Object.entries(bytes))
    expect(Buffer.byteLength(kit[name as keyof typeof kit]), name).toBeLessThanOrEqual(max);
  expect(kit["herald-worker.js"]).not.toMatch(/\b(?:import|export)\b/);
  expect(kit["herald.js"]).toMatch(/export\{\w+ as createHerald\}/);
});
