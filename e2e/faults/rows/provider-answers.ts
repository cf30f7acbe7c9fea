import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { type Provider, ProviderPausedV1, ProviderResumedV1 } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { throttles as allThrottles, shortThrottles } from "../../harness/answer-cases.ts";
import { eventsOf } from "../../harness/compare-events.ts";
import { payloadOf } from "../../harness/simulators.ts";
import { meetThrottles, throttleKept, throttleRules } from "../../harness/throttles.ts";
import type { Row } from "../row.ts";
import { crowd, providers, single, startTrial } from "../trial.ts";

const throttle: Row = {
  name: "retry-after",
  fault: "429 with Retry-After 30 (short: 8) from each provider during broadcasts",
  pass: "no request of the project to that provider earlier, except those in flight",
  run: async ({ long, shared }) => {
    const system = await shared();
    const trial = await startTrial(system, { each: 100, script: [] });
    const wait = long ? 30 : 8;
    const headers = { "retry-after": String(wait) };
    // The first broadcast proves the credentials, so that the next meets the refusal at full width.
    await trial.broadcastUnderWay();
    await eventually(
      async () => {
        const all = await trial.project.notifications();
        if (all.some(({ targets, completed_at }) => targets.includes("everyone") && !completed_at))
          throw new Error("the first broadcast is not done");
      },
      { timeoutMs: 30_000 },
    );
    const rules = providers.map((provider) => ({ provider, tokenPrefix: crowd, status: 429, headers, times: 1 }));
    await system.simulators.script(rules);
    const id = await trial.broadcast();
    const pushesTo = async (provider: Provider) =>
      (await system.simulators.pushes({ provider })).filter((push) => payloadOf(push)?.project_id === trial.project.id);
    await eventually(async () => {
      for (const provider of providers)
        if (!(await pushesTo(provider)).some(({ status }) => status === 429))
          throw new Error(`${provider} has refused nothing yet`);
    });
    // Dispatch has, or is about to read, all refusals. The load has one send on its way.
    const before = trial.load.promised.length + 1;
    const broadcasts: string[] = [];
    for (let round = 0; round < 3; round++) {
      await delay(1_000);
      broadcasts.push(await trial.broadcast());
    }
    const findings = await trial.finish({ timeoutMs: (wait + 60) * 1_000 });
    const later = new Set([...broadcasts, ...trial.load.promised.slice(before).map((one) => one.id)]);
    for (const provider of providers) {
      const pushes = await pushesTo(provider);
      const at = Date.parse(pushes.find(({ status }) => status === 429)?.at ?? "");
      const within = (ms: number) =>
        pushes.filter((push) => Date.parse(push.at) >= at && Date.parse(push.at) < at + ms);
      const early = within(wait * 1_000).filter((push) => later.has(payloadOf(push).notification_id));
      if (early.length > 0) trial.problem(`${provider}: ${early.length} requests before Retry-After had passed`);
      // Requests that were written before the refusal, even if they are read much later.
      const onTheirWay = within(wait * 1_000);
      const late = onTheirWay.length - within(wait * 500).length;
      if (late > 0) trial.problem(`${provider}: ${late} requests after half of Retry-After`);
      trial.note(`${provider}: ${onTheirWay.length - 1} were on their way (${id.slice(-6)})`);
    }
    return findings;
  },
};

const throttleOfOne: Row = {
  name: "retry-after-one",
  fault: "429 to one device with Retry-After 5 and 1 (long: also 30, and none from FCM, which means 60 s)",
  pass: "no request of the project to that provider earlier; then only the two that wait",
  run: async ({ long, shared }) => {
    const system = await shared();
    const throttles = long ? allThrottles : shortThrottles;
    await system.simulators.script(throttleRules(throttles));
    const met = await meetThrottles(system, throttles);
    const problems = met.flatMap(({ about, kept }) =>
      isDeepStrictEqual(kept, throttleKept) ? [] : [`${about}: ${JSON.stringify(kept)}`],
    );
    const final = met.reduce((sum, { kept }) => sum + kept.became.length, 0);
    const repeated = { marked: 0, unmarked: 0 };
    return { sent: 2 * throttles.length, final, lost: 0, repeated, recoveryMs: undefined, problems, notes: [] };
  },
};

const refused: Row = {
  name: "credential",
  fault: "one project's APNs credential is refused",
  pass: "only its provider pauses, with an event; with a new one, what waited is sent",
  run: async ({ shared }) => {
    const system = await shared();
    const trial = await startTrial(system, { each: 100, script: [] });
    const { project } = trial;
    // Each of the project's pushes: a credential that one of them proves whose refusal is not confirmed.
    const refusal = { provider: "apns", status: 403, reason: "InvalidProviderToken" } as const;
    await system.simulators.script([crowd, single].map((tokenPrefix) => ({ ...refusal, tokenPrefix })));
    const id = await trial.broadcast();
    const provider = async (name: string) =>
      expectStatus(await system.admin(`GET /projects/${project.id}/providers/${name}`), 200).body.data.status;
    await eventually(async () => {
      if ((await provider("apns")) !== "paused") throw new Error("APNs is not paused");
    }).catch((error: Error) => trial.problem(error.message));
    for (const other of ["fcm", "webpush"])
      if ((await provider(other)) !== "active") trial.problem(`${other} is paused too`);
    await eventually(
      async () => {
        const { accepted, pending } = (await project.notification(id)).counts;
        if (accepted !== 200 || pending !== 100) throw new Error(`${accepted} are accepted, ${pending} wait`);
      },
      { timeoutMs: 30_000 },
    ).catch((error: Error) => trial.problem(error.message));
    const neighbour = await system.project("Neighbour");
    const { device } = await neighbour.register();
    const beside = await neighbour.send({ title: "Beside", targets: [device.id] });
    // The pause lasts until the credential is mended below.
    await neighbour.final(beside.id).catch((error: Error) => trial.problem(error.message));

    await system.simulators.script([]);
    await system.putProvider(project, "apns", { key_id: "E2EKEY0002" });
    await trial.recovered();
    const findings = await trial.finish();
    for (const [name, contract] of [
      ["pause", ProviderPausedV1],
      ["resumption", ProviderResumedV1],
    ] as const)
      await eventually(async () => {
        const { length } = await eventsOf<unknown>(system, project, contract);
        if (length !== 1) throw new Error(`the ${name} was published ${length} times`);
      }).catch((error: Error) => trial.problem(error.message));
    return findings;
  },
};

const lastYear = 365 * 86_400_000;

const gone: Row = {
  name: "unregistered",
  fault: "410 with a time before and after the registration",
  pass: "only the older registration is removed",
  run: async ({ shared }) => {
    const system = await shared();
    const trial = await startTrial(system, { each: 100, script: [] });
    const { project } = trial;
    const token = (prefix: string) => prefix.padEnd(64, "0");
    const kept = (await project.register({ token: token("01de") })).device;
    const retired = (await project.register({ token: token("0e44") })).device;
    await system.simulators.script([
      { provider: "apns", tokenPrefix: "01de", status: 410, timestamp: Date.now() - lastYear },
      { provider: "apns", tokenPrefix: "0e44", status: 410 }, // no timestamp means now
    ]);
    await trial.sendTo([kept.id, retired.id]);
    const state = async (id: string) =>
      expectStatus(await project.call(`GET /devices/${id}`), 200).body.data.status as string;
    await eventually(async () => {
      if ((await state(retired.id)) !== "inactive") throw new Error("the older registration stays");
    }).catch((error: Error) => trial.problem(error.message));
    if ((await state(kept.id)) !== "active") trial.problem("the newer registration is gone");
    const again = await project.register({ token: retired.token });
    if (again.device.id !== retired.id || again.device.status !== "active")
      trial.problem("the device that registers again is not the one that was retired");
    await trial.recovered();
    return trial.finish();
  },
};

export const providerAnswerRows: readonly Row[] = [throttle, throttleOfOne, refused, gone];
