import { createECDH, randomBytes } from "node:crypto";
import { type Platform, type Provider, providerOf } from "@herald/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { seed } from "../harness/seed.ts";
import { logOnFailure, type System, serviceNames, startSystem } from "../harness/system.ts";
import { startMangler } from "./answers.ts";
import { show } from "./figures.ts";
import { memoryOf } from "./memory.ts";
import { scale } from "./scale.ts";

const platforms: readonly Platform[] = ["ios", "android", "web"];
type Mangler = Awaited<ReturnType<typeof startMangler>>;

let system: System;
let manglers: Record<Provider, Mangler>;
beforeAll(async () => {
  const start = (provider: Provider, at: number) => startMangler(provider, 20_260_101 + at);
  const [apns, fcm, webpush] = await Promise.all([start("apns", 0), start("fcm", 1), start("webpush", 2)]);
  manglers = { apns, fcm, webpush };
  // Otherwise missing answers would take most of the time.
  system = await startSystem({ env: { HERALD_LOG_LEVEL: "error", HERALD_DISPATCH_REQUEST_TIMEOUT: "2s" } });
});
afterAll(async () => {
  await system?.stop();
  await Promise.all(Object.values(manglers ?? {}).map((one) => one.close()));
});
logOnFailure(() => system);

/** Unaccepted pushes expire after this time, so that every notification ends. */
const ttlSeconds = 20;
const each = 250; // of which one round gets as many answers as a short run wants
const breathMb = 96;
/** A finished project's client of each provider stays open. */
const clientMb = 1;

/** A device of each platform, many times, in a project of its own whose providers are the manglers. */
async function newCrowd(devices: number) {
  const project = await system.project("Mangled", []);
  for (const platform of platforms) {
    const provider = providerOf[platform];
    const { origin: endpoint, ca } = manglers[provider];
    await system.putProvider(project, provider, { endpoint, ca });
    await seed({ ...system, simulators: { ...system.simulators, subscribe } }, project, devices, {
      platform,
      topics: ["all-of-us"],
    });
  }
  return project;
}

const subscribe: System["simulators"]["subscribe"] = async () => {
  const pair = createECDH("prime256v1");
  const keys = { p256dh: pair.generateKeys().toString("base64url"), auth: randomBytes(16).toString("base64url") };
  return { endpoint: `${manglers.webpush.origin}/${randomBytes(16).toString("hex")}`, expirationTime: null, keys };
};

const fewest = () => Math.min(...Object.values(manglers).map((one) => one.answered()));

test("mangled HTTP/2 responses: every device ends, and dispatch survives", async ({ task }) => {
  const pids = serviceNames.map((name) => system.services[name].pid());
  const wanted = scale(10_000, 300);
  const became: Record<string, number> = {};
  let projects = 0;
  let before = 0;
  while (fewest() < wanted) {
    const atOnce = scale(4, 1);
    const crowds = await inParallel(Array.from({ length: atOnce }), atOnce, () => newCrowd(each));
    projects += atOnce;
    await inParallel(crowds, atOnce, async (project) => {
      const { id } = await project.send({ title: "Hello", targets: ["all-of-us"], ttl: ttlSeconds });
      const { counts } = await project.final(id, 240_000);
      expect(counts).toMatchObject({ devices: each * platforms.length, pending: 0 });
      for (const { status, reason } of await project.deliveries(id)) {
        const what = reason === undefined ? status : `${status} ${reason}`;
        became[what] = (became[what] ?? 0) + 1;
      }
    });
    before ||= await memoryOf(system, "dispatch");
  }
  const after = await memoryOf(system, "dispatch");
  expect(Object.keys(became).filter((what) => what.endsWith(" internal"))).toEqual([]);
  expect(serviceNames.map((name) => system.services[name].pid())).toEqual(pids);
  expect(after - before).toBeLessThan(breathMb + projects * platforms.length * clientMb);

  for (const one of Object.values(manglers)) one.mend();
  const well = await newCrowd(10);
  const { id } = await well.send({ title: "Well again", targets: ["all-of-us"] });
  expect((await well.final(id, 120_000)).counts).toMatchObject({ devices: 30, accepted: 30 });
  show(task, {
    answers: Object.entries(manglers)
      .map(([provider, one]) => `${provider} ${one.answered()}`)
      .join(", "),
    projects,
    became: Object.entries(became)
      .sort(([, a], [, b]) => b - a)
      .map(([what, count]) => `${count} ${what}`)
      .join(", "),
    "MB before": before,
    "MB after": after,
  });
});
