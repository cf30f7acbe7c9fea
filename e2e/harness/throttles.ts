import { providerOf } from "@herald/contracts";
import type { Rule } from "@herald/simulators";
import { eventually } from "@herald/testing";
import type { Throttle } from "./answer-cases.ts";
import { inParallel } from "./in-parallel.ts";
import { newAddress } from "./seed.ts";
import { payloadOf } from "./simulators.ts";
import type { System } from "./system.ts";

/** A repeat comes at a random time within ten seconds, and its timer has a fallback some seconds later. */
export const withRepeat = 45_000;
/** Few enough for a busy machine. All of them are sent before the test waits for the first. */
const atATime = 6;

/** The prefix of the push tokens of one case: every case has its own project, device and rule. */
export const prefixOf = (group: "a" | "b" | "c", index: number): string =>
  `${group}${index.toString(16).padStart(3, "0")}`;

export const throttleRules = (throttles: readonly Throttle[]): Rule[] =>
  throttles.map(({ platform, headers }, index) => ({
    provider: providerOf[platform],
    tokenPrefix: prefixOf("c", index),
    status: 429,
    ...(headers ? { headers } : {}),
    times: 1,
  }));

/** The expected result of each throttle. */
export const throttleKept = { requests: 2, tooEarly: [], became: ["accepted 1", "accepted 1"] };

/** Triggers each throttle once by {@link throttleRules}, with a second send in parallel. Resolves to the times of the requests. */
export async function meetThrottles(system: System, throttles: readonly Throttle[]) {
  const pushesOf = async (...ids: readonly string[]) =>
    (await system.simulators.pushes()).filter((push) => ids.includes(payloadOf(push)?.notification_id));
  const sent = await inParallel(throttles, atATime, async (one, index) => {
    const { platform } = one;
    const project = await system.project("Throttle", [providerOf[platform]]);
    const register = async (prefix?: string) =>
      (await project.register({ platform, ...(await newAddress(system.simulators, platform, prefix)) })).device;
    const [asked, other] = [await register(prefixOf("c", index)), await register()];
    const { id } = await project.send({ title: "Hello", targets: [asked.id] });
    const refused = await eventually(
      async () => {
        const [first] = await pushesOf(id);
        if (!first) throw new Error("no request has arrived");
        return first;
      },
      { timeoutMs: 30_000 },
    );
    // The provider logs an answer before dispatch has read it.
    await eventually(
      async () => {
        const [row] = await project.deliveries(id);
        if (!row?.attempts) throw new Error("the refused attempt is not in the ledger");
      },
      { timeoutMs: 30_000 },
    );
    const beside = await project.send({ title: "Beside", targets: [other.id] });
    return { ...one, project, id, beside: beside.id, from: Date.parse(refused.at) };
  });
  return inParallel(sent, atATime, async ({ platform, seconds, project, id, beside, from }) => {
    for (const one of [id, beside]) await project.final(one, seconds * 1_000 + withRepeat);
    const [, ...later] = await pushesOf(id, beside);
    const waited = later.map(({ at }) => Date.parse(at) - from);
    const rows = [...(await project.deliveries(id)), ...(await project.deliveries(beside))];
    return {
      about: `${platform} ${seconds} s`,
      kept: {
        requests: later.length,
        tooEarly: waited.filter((ms) => ms < seconds * 1_000),
        became: rows.map(({ status, attempts }) => `${status} ${attempts}`),
      },
    };
  });
}
