import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Push, Rule } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { newAddress, seed } from "../../harness/seed.ts";
import { payloadOf, wasAccepted } from "../../harness/simulators.ts";
import type { System } from "../../harness/system.ts";
import { changeable } from "../changeable.ts";
import type { Row } from "../row.ts";
import { slowness } from "../slowness.ts";
import { crowd, seconds, single, startTrial, type Trial } from "../trial.ts";

/** The limit for other projects and platforms during the trouble with APNs. They share only the machine with it. */
const othersWithinMs = 5_000;
const maxMemory = 256;
/** Attempts, and tries that APNs answered with 503, which use none. */
const maxTries = 12;
/** The delays of retries: at least half a second, with full jitter below a ceiling that doubles from ten seconds. */
const minMs = 500;
const ceilingMs = (attempt: number) => Math.min(600_000, 10_000 * 2 ** (attempt - 1));
/**
 * A request without an answer takes 20 s. A paused server gets one batch within 60 s. Batches that arrive meanwhile wait up to
 * 60 s more, and then for their turn.
 */
const slackMs = 160_000;

type Trouble = {
  readonly name: string;
  readonly fault: string;
  readonly pass: string;
  /** In the short form dispatch waits for an answer as long, instead of 20 s. */
  readonly requestTimeout?: string;
  readonly rules: readonly Omit<Rule, "provider" | "tokenPrefix">[];
  /** The longest time from the end of the fault to the last repeat. */
  readonly finalWithinMs: { long: number; short: number };
};

const troubles: readonly Trouble[] = [
  {
    name: "apns-errors",
    fault: "APNs answers 500 and 503 for 5 min (short: 12 s)",
    pass: "at most 8 attempts with growing delays; other projects and platforms unaffected; bounded memory",
    rules: [{ status: 500, share: 0.5 }, { status: 503 }],
    finalWithinMs: { long: 700_000, short: 90_000 },
  },
  {
    name: "apns-hangs",
    fault: "APNs answers nothing for 5 min (short: 12 s)",
    pass: "the same; devices with an unknown answer are marked",
    requestTimeout: "5s",
    rules: [{ hang: true }],
    finalWithinMs: { long: 700_000, short: 90_000 },
  },
  {
    name: "apns-slow",
    fault: "APNs takes 10 s to answer",
    pass: "the same; no repeat",
    rules: [{ delayMs: 10_000 }],
    finalWithinMs: { long: 90_000, short: 60_000 },
  },
];

/** The memory of a process in MB. */
const memoryOf = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
};

/** Sends to others once a second. Measures the longest time from the request to the push. */
async function watchOthers(
  system: System,
  trial: Trial,
  until: number,
): Promise<{ slowestMs: number; slowest: string; memory: number }> {
  const neighbour = await system.project("Neighbour", ["apns"]);
  await seed(system, neighbour, 1, { prefix: single, topics: ["me"] });
  const own = await Promise.all(
    (["android", "web"] as const).map(async (platform) => {
      const address = await newAddress(system.simulators, platform, single);
      return (await trial.project.register({ platform, ...address })).device;
    }),
  );
  let [slowestMs, slowest, memory] = [0, "", 0];
  while (Date.now() < until) {
    const [from, since] = [performance.now(), new Date()];
    const sent = [
      (await neighbour.send({ title: "Beside", targets: ["me"] })).id,
      await trial.sendTo(own.map(({ id }) => id)),
    ];
    const takenMs = performance.now() - from;
    const arrived = async () =>
      (await system.simulators.pushes({ since })).filter(
        (push) => wasAccepted(push) && sent.includes(payloadOf(push).notification_id),
      );
    const devices = 1 + own.length;
    await eventually(
      async () => {
        if ((await arrived()).length < devices) throw new Error("others wait");
      },
      { timeoutMs: othersWithinMs * 4 },
    ).catch((error: Error) => trial.problem(error.message));
    const tookMs = performance.now() - from;
    if (tookMs > slowestMs) {
      const pushes = (await arrived()).map(
        ({ provider, at }) => `${provider} after ${seconds(Date.parse(at) - since.getTime())}`,
      );
      [slowestMs, slowest] = [tookMs, [`taken after ${seconds(takenMs)}`, ...pushes].join(", ")];
    }
    memory = Math.max(memory, await memoryOf(system.services.dispatch.pid()));
    await delay(1_000);
  }
  return { slowestMs, slowest, memory };
}

/**
 * Checks that no device was tried too often, too early or, after APNs has recovered, too late. Before that a pause may skip any number of
 * rounds.
 */
function checkAttempts(pushes: readonly Push[], wellSince: number, trial: Trial): void {
  const times = new Map<string, number[]>();
  for (const push of pushes) {
    if (push.provider !== "apns" || !push.token.startsWith(crowd)) continue;
    const { project_id, notification_id } = payloadOf(push);
    if (project_id !== trial.project.id) continue; // a push of an earlier row
    const key = `${notification_id} ${push.token}`;
    times.set(key, [...(times.get(key) ?? []), Date.parse(push.at)]);
  }
  const gaps: { ms: number; wellMs: number }[][] = [];
  let max = 0;
  for (const all of times.values()) {
    max = Math.max(max, all.length);
    for (const [index, at] of all.slice(1).entries()) {
      const before = all[index] ?? 0;
      const gap = { ms: at - before, wellMs: at - Math.max(before, wellSince) };
      gaps[index] = [...(gaps[index] ?? []), gap];
    }
  }
  for (const [index, all] of gaps.entries()) {
    const [min, longest] = [Math.min(...all.map(({ ms }) => ms)), Math.max(...all.map(({ wellMs }) => wellMs))];
    if (min < minMs) trial.problem(`attempt ${index + 2} came after ${min} ms already`);
    if (longest > ceilingMs(index + 1) + slackMs)
      trial.problem(`attempt ${index + 2} came ${seconds(longest)} after APNs was well`);
  }
  if (max > maxTries) trial.problem(`${max} tries for one device`);
  const means = gaps.map((all) => seconds(all.reduce((sum, { ms }) => sum + ms, 0) / all.length));
  trial.note(`at most ${max} tries; mean waits before each: ${means.join(", ") || "none"}`);
}

const troubleRow = ({ name, fault, pass, requestTimeout, rules, finalWithinMs }: Trouble): Row => ({
  name,
  fault,
  pass,
  ...(requestTimeout && { fixture: changeable }),
  run: async ({ long, shared, use }) => {
    const inTime = async (timeout: string) =>
      (await use(changeable)).withVariables(long ? {} : { HERALD_DISPATCH_REQUEST_TIMEOUT: timeout });
    const system = requestTimeout ? await inTime(requestTimeout) : await shared();
    const trial = await startTrial(system, { script: [] });
    await system.simulators.script(rules.map((rule) => ({ ...rule, provider: "apns", tokenPrefix: crowd })));
    const durationMs = name === "apns-slow" || !long ? 12_000 : 300_000;
    const until = Date.now() + durationMs;
    await trial.broadcast();
    const broadcasts = (async () => {
      for (; Date.now() < until; await delay(long ? 20_000 : 5_000)) await trial.broadcast();
    })();
    const [{ slowestMs, slowest, memory }] = await Promise.all([watchOthers(system, trial, until), broadcasts]);
    const slow = await slowness();
    if (slowestMs > othersWithinMs * slow) trial.problem(`others waited ${seconds(slowestMs)}: ${slowest}`);
    if (memory > maxMemory) trial.problem(`dispatch held ${Math.round(memory)} MB`);
    trial.note(
      `others waited ${seconds(slowestMs)} at most (limit stretched ${slow.toFixed(1)} times); dispatch held ${Math.round(memory)} MB at most`,
    );

    if (name !== "apns-slow") await system.simulators.script([]);
    const wellSince = Date.now();
    await trial.recovered();
    const findings = await trial.finish({ timeoutMs: long ? finalWithinMs.long : finalWithinMs.short });
    checkAttempts(await system.simulators.pushes(), wellSince, trial);
    const { repeated } = findings;
    if (name === "apns-slow" && repeated.marked > 0) trial.problem(`${repeated.marked} were sent twice`);
    return findings;
  },
});

export const slowApns: readonly Row[] = troubles.map(troubleRow);
