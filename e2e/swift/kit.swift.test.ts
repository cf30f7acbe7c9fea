import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expectStatus, startRedirectingServer } from "@herald/testing";
import { afterAll, expect, test } from "vitest";
import { blocksMissingIn } from "../harness/code-blocks.ts";
import { startSystem } from "../harness/system.ts";
import { claimsOf, hs256, nowSeconds } from "../harness/user-tokens.ts";
import { findSwift } from "./compiler.ts";

/** Compiles kits/swift and a package that has nothing else, and runs the kit's tests against a running system. */

const progress = (line: string) => process.stderr.write(`${line}\n`);

const swift = await findSwift(process.env, progress);
if (typeof swift === "string") progress(`SKIPPED: Swift kit not tested: no compiler: ${swift}`);

const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

test("the package that uses the kit, which is compiled with it, has the page's blocks", async () => {
  const root = join(import.meta.dirname, "../..");
  const app = await readFile(join(root, "e2e/swift/consumer/Sources/App/App.swift"), "utf8");
  const page = await readFile(join(root, "docs/how-to/connect-swift.md"), "utf8");
  expect(blocksMissingIn(app, page, "swift")).toEqual([]);
});

test.runIf(typeof swift !== "string")("the kit's tests pass against a running Herald", async () => {
  if (typeof swift === "string") return;
  await swift.build();
  const system = await startSystem();
  closing.push(system.stop);
  const project = await system.project("Swift");
  expectStatus(await project.call("POST /topics", { body: { topic: { name: "news" } } }), 201);
  for (const [name, kind] of Object.entries({
    offers: { title: "Offers" },
    security: { title: "Security", critical: true },
  }))
    expectStatus(await system.admin(`PUT /projects/${project.id}/kinds/${name}`, { body: { kind } }), 201);
  const key = await system.admin(`POST /projects/${project.id}/identity-keys`, { body: {} });
  const { secret } = expectStatus(key, 201).body;
  // Each is issued a second after the one before.
  const userTokens = Array.from({ length: 10 }, (_, number) =>
    hs256(secret, { claims: claimsOf(project.id, "u-swift", { iat: nowSeconds() - 30 + number }) }),
  );
  const { gateway, simulators } = system;
  const redirecting = await startRedirectingServer();
  closing.push(redirecting.stop);
  const settings = {
    redirecting: redirecting.url,
    gateway,
    project: project.id,
    token: project.token,
    simulator: simulators.url,
    userTokens,
  };
  const tested = await swift.test({ HERALD_TEST: JSON.stringify(settings) });
  // Only what failed: a runner shortens long messages.
  const failures = tested.output.split("\n").filter((line) => /✘|error|never/.test(line));
  expect(tested.code, failures.join("\n") || tested.output).toBe(0);
  expect(tested.output).not.toMatch(/skipped/);
  expect(redirecting.followed).toEqual([]);
});
