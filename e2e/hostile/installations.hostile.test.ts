import { setTimeout as sleep } from "node:timers/promises";
import { expectStatus } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { percentile } from "../../bench/src/table.ts";
import { apnsToken, type Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { memoryOf } from "./memory.ts";
import { scale } from "./scale.ts";
import { stranger } from "./stranger.ts";

/** Strangers who register devices of one app installation, and ordinary sends that one of these devices joins. */
let system: System;
beforeAll(async () => {
  // As in production. Without limits, sixteen addresses register 840 devices a second, all that two cores do.
  const env = { HERALD_GATEWAY_LIMIT_CLIENTS: "600", HERALD_GATEWAY_LIMIT_NEW_DEVICES: "2000" };
  system = await startSystem({ env });
});
afterAll(() => system?.stop());
logOnFailure(() => system);

const addresses = scale(16, 2);
const projects = scale(8, 2);
/** How many of them the strangers register. */
const wanted = scale(20_000, 500);
/** A tenant's ordinary traffic, for each project. */
const sendEveryMs = scale(1_000, 250);

/** As much as a client may store, in a value that no index contains. */
const filler = "x".repeat(10_000);

type Attacked = { readonly project: Project; readonly installation: string };

const identification = ({ project, installation }: Attacked, more: object): string =>
  JSON.stringify({ project_id: project.id, platform: "ios", installation_id: installation, ...more });

/** A device that joins the audience `metadata:plan=free`, and whose installation Herald must look up. */
const join = async (attacked: Attacked): Promise<void> => {
  const address = stranger(system.gateway, "127.9.0.1");
  const body = identification(attacked, {
    ...{ provider: "fcm", identifier: `joined-${attacked.project.id}`, metadata: { plan: "free" } },
  });
  expect((await address.ask("PUT", "/api/v1/identification", { body })).status).toBe(201);
  address.close();
};

/** Registers devices of the installations as fast as the address may, and adds the time of each new one. */
const flood = async (at: number, attacked: readonly Attacked[], goesOn: () => boolean, times: number[]) => {
  const { ask, close } = stranger(system.gateway, `127.9.1.${at + 1}`);
  const one = async () => {
    for (let n = at; goesOn(); n++) {
      const target = attacked[n % attacked.length];
      if (!target) break;
      const body = identification(target, { identifier: apnsToken(), metadata: { note: filler } });
      const { status, headers } = await ask("PUT", "/api/v1/identification", { body });
      if (status === 201) times.push(Date.now());
      else if (status === 429) await sleep(Math.min(2, Number(headers["retry-after"] ?? 1)) * 1_000);
    }
  };
  await Promise.all(Array.from({ length: 4 }, one));
  close();
};

type Arrival = { readonly sent: number; readonly at: number };

/** When each send was posted, and when its push came. */
const arrivalsOf = async (project: Project, goesOn: () => boolean): Promise<Arrival[]> => {
  const arrived = system.simulators.follow();
  const { device } = await project.register();
  const sentAt = new Map<string, number>();
  const arrivals: Arrival[] = [];
  const take = async () => {
    for (const push of await arrived()) {
      const sent = sentAt.get(payloadOf(push).notification_id);
      if (sent !== undefined) arrivals.push({ sent, at: Date.parse(push.at) });
    }
  };
  while (goesOn()) {
    const at = Date.now();
    const { id } = await project.send({ title: "Code", targets: [`device:${device.id}`] });
    sentAt.set(id, at);
    await sleep(100);
    if (sentAt.size % 10 === 0) await take();
  }
  await expect.poll(async () => take().then(() => arrivals.length), { timeout: 30_000 }).toBe(sentAt.size);
  return arrivals;
};

test("devices of one installation, registered by strangers, make no send dearer", async ({ task }) => {
  const running = system.services.registry.pid();
  const neighbour = await system.project("Neighbour");
  const attacked: Attacked[] = [];
  for (let n = 0; n < projects; n++)
    attacked.push({ project: await system.project(`Attacked ${n}`), installation: `installation-${n}` });
  const [{ project }] = attacked as [Attacked];
  const send = () => project.send({ title: "News", targets: ["metadata:plan=free"] });
  const sends = 20;
  const cpu = () =>
    cpuFor(system, "registry", sends, async () => {
      const sent: string[] = [];
      for (let n = 0; n < sends; n++) sent.push((await send()).id);
      for (const id of sent) await project.final(id, 60_000);
    });
  await Promise.all(attacked.map(join));
  await cpu();
  const cpuBefore = await cpu();

  const registered: number[] = [];
  const goesOn = () => registered.length < wanted;
  let maxMemory = 0;
  const watch = async () => {
    for (; goesOn(); await sleep(250)) maxMemory = Math.max(maxMemory, await memoryOf(system, "registry"));
  };
  const sending = async (one: Project) => {
    const sent: string[] = [];
    for (; goesOn(); await sleep(sendEveryMs))
      sent.push((await one.send({ title: "News", targets: ["metadata:plan=free"] })).id);
    for (const id of sent) expect((await one.final(id, 60_000)).counts.devices).toBeGreaterThan(0);
    return sent.length;
  };
  const [sentMeanwhile, arrivals] = await Promise.all([
    Promise.all(attacked.map((one) => sending(one.project))),
    arrivalsOf(neighbour, goesOn),
    watch(),
    ...Array.from({ length: addresses }, (_, at) => flood(at, attacked, goesOn, registered)),
  ]);
  const times = arrivals.map(({ sent, at }) => at - sent);
  const overtaken = arrivals.map(({ sent, at }) => registered.filter((one) => one > sent && one < at).length);
  const cpuAfter = await cpu();
  const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);
  show(task, {
    addresses,
    projects,
    "devices registered": registered.length,
    "sends that they join": sum(sentMeanwhile),
    "CPU ms of registry a send before": cpuBefore,
    "CPU ms after": cpuAfter,
    "another's send meanwhile, p50 ms": percentile(times, 50),
    "p99 ms": percentile(times, 99),
    "registrations in between, p50": percentile(overtaken, 50),
    "registry's memory at max, MB": maxMemory,
  });
  expect(cpuAfter).toBeLessThan(3 * cpuBefore + 5);
  // Beside a queue of registrations, each send would come after hundreds. Counted, because a busy machine slows both.
  expect(percentile(overtaken, 50)).toBeLessThan(100);
  expect(maxMemory).toBeLessThan(300);
  expect(system.services.registry.pid()).toBe(running);
});

test("a stranger with a phone's installation id takes none of its pushes", async ({ task }) => {
  const project = await system.project("Stolen");
  const { ask, close } = stranger(system.gateway, "127.9.2.1");
  const identify = async (body: object) =>
    JSON.parse((await ask("PUT", "/api/v1/identification", { body: JSON.stringify(body) })).text);
  const phone = {
    project_id: project.id,
    platform: "ios",
    installation_id: "of-the-victim",
    metadata: { plan: "pro" },
  };
  const victim = await identify({ ...phone, provider: "fcm", identifier: "fcm-token-of-the-victim" });
  await identify({ ...phone, identifier: apnsToken() });
  const list = expectStatus(await project.call("GET /devices?match=all"), 200).body.data;
  const reached = list.some(({ id }: { id: string }) => id === victim.data.id);
  show(task, { "victims that a send still reaches": reached ? 1 : 0 });
  expect(reached).toBe(true);
  close();
});
