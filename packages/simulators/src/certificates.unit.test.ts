import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createIdentity, keepIdentity } from "./certificates.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-simulators-"));
});
afterEach(() => rm(folder, { recursive: true }));

it("makes a leaf for this machine and the host, signed by the authority", async () => {
  const identity = await createIdentity("simulators.example");
  const leaf = new X509Certificate(identity.certificate);
  const authority = new X509Certificate(identity.ca);
  expect(authority.ca).toBe(true);
  expect(leaf.ca).toBe(false);
  expect(leaf.verify(authority.publicKey)).toBe(true);
  expect(leaf.checkHost("simulators.example")).toBe("simulators.example");
  expect(leaf.checkHost("localhost")).toBe("localhost");
  expect(leaf.checkIP("127.0.0.1")).toBe("127.0.0.1");
  expect(leaf.checkHost("other.example")).toBeUndefined();
});

it("keeps it in a file that only its owner reads, for as long as it fits", async () => {
  const file = join(folder, "identity.json");
  const first = await keepIdentity(file, "127.0.0.1");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await keepIdentity(file, "127.0.0.1")).toEqual(first);
  expect(await keepIdentity(file, "simulators.example")).not.toEqual(first);
  await writeFile(file, "broken");
  const next = await keepIdentity(file, "127.0.0.1");
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual(next);
});
