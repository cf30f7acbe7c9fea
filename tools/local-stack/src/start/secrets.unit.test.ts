import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keepSecrets } from "./secrets.ts";

test("passwords can be pasted behind a flag, and stay the same", async () => {
  const folder = await mkdtemp(join(tmpdir(), "herald-secrets-"));
  try {
    const { adminToken, nats, ...others } = await keepSecrets(folder);
    for (const secret of [adminToken, ...Object.values(nats)]) expect(secret).toMatch(/^[0-9a-f]{48}$/);
    expect(await keepSecrets(folder)).toEqual({ adminToken, nats, ...others });
  } finally {
    await rm(folder, { recursive: true });
  }
});
