import type { Platform, Provider } from "@herald/contracts";
import type { Rule } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { checkInvariants } from "../../harness/invariants.ts";
import { deliveryKey } from "../../harness/ledger.ts";
import { seed } from "../../harness/seed.ts";
import { deviceOf, payloadOf, wasAccepted } from "../../harness/simulators.ts";
import { changeable } from "../changeable.ts";
import type { Row } from "../row.ts";
import { slowness } from "../slowness.ts";
import { platforms, providers } from "../trial.ts";

type Audience = Readonly<Record<Platform, number>>;
const audiences: Readonly<Record<"long" | "short", Audience>> = {
  long: { ios: 4_000, android: 3_000, web: 3_000 },
  short: { ios: 1_000, android: 800, web: 800 },
};
/** The ack wait, after which another process gets the batches of a dead one, and four rounds of repeats of up to 40 s. */
const finalWithinMs = 240_000;
const answerMs = 200;

/** One request in twenty fails, in one of five ways. The rest is slow, so that the kill hits a running broadcast. */
const failures = (provider: Provider): Rule[] => [
  { provider, share: 0.01, status: provider === "fcm" ? 404 : 410 },
  { provider, share: 0.01, status: 503 },
  { provider, share: 0.01, status: 500, delayMs: 100 },
  { provider, share: 0.01, rst: "INTERNAL_ERROR" },
  { provider, share: 0.01, hang: true },
  { provider, delayMs: answerMs },
];

export const threePlatforms: Row = {
  name: "three-platforms",
  fault:
    "kill -9 of dispatch during 10,000 pushes (short: 2,600) on three platforms, one in twenty failing in five ways",
  pass: "each is accepted or failed; only what was in flight is repeated",
  fixture: changeable,
  run: async ({ long, use }) => {
    const { withVariables } = await use(changeable);
    const system = await withVariables({
      HERALD_DISPATCH_REQUEST_TIMEOUT: long ? "5s" : "2s",
      // 500 a second per platform, in the short form 250, or the broadcast ends before the kill.
      HERALD_DISPATCH_IN_FLIGHT: long ? "100" : "50",
    });
    const audience = audiences[long ? "long" : "short"];
    const everyone = Object.values(audience).reduce((sum, count) => sum + count, 0);
    const project = await system.project("Everyone", providers);
    for (const platform of platforms)
      await seed(system, project, audience[platform], { platform, topics: ["everyone"] });
    await system.simulators.script(providers.flatMap(failures));
    const problems: string[] = [];
    const require = (is: boolean, otherwise: string) => {
      if (!is) problems.push(otherwise);
    };

    const { id } = await project.send({ title: "To everyone", targets: ["topic:everyone"] });
    const accepted = async () => (await system.simulators.pushes()).filter(wasAccepted);
    await eventually(
      async () => {
        const seen = new Set((await accepted()).map(({ provider }) => provider));
        if (seen.size < platforms.length || (await project.notification(id)).counts.accepted <= everyone / 20)
          throw new Error("it is not in its middle yet");
      },
      { timeoutMs: 60_000 },
    );
    // Deliveries that are final in the ledger before the kill are not in flight.
    const final = (await project.deliveries(id)).filter(({ status }) => status !== "pending");
    const died = Date.now();
    const [, slow] = await Promise.all([system.services.dispatch.kill(), slowness()]);
    const state = (await project.notification(id).catch(() => undefined))?.status;
    require(state !== "completed", "it was completed before dispatch died");

    const report = await checkInvariants(system, project, [{ id, devices: everyone }], { timeoutMs: finalWithinMs });
    const { repeated, lost, unmarked, wrong, deliveries } = report;
    const { counts, failures: failed } = await project.notification(id);
    const { accepted: taken, failed: gone, devices, ...none } = counts;
    require(devices === everyone && taken + gone === everyone, `counts ${JSON.stringify(counts)}`);
    require(Object.values(none).every((count) => count === 0), `counts ${JSON.stringify(counts)}`);
    require(Object.keys(failed).join() === "unregistered", `failed for ${Object.keys(failed).join(", ")}`);
    require(final.length > 0, "nothing was final before it died");

    const times = new Map<string, number[]>();
    for (const push of await accepted()) {
      const key = deliveryKey(payloadOf(push).notification_id, deviceOf(push));
      times.set(key, [...(times.get(key) ?? []), Date.parse(push.at)]);
    }
    const twice = [...times].filter(([, at]) => at.length > 1);
    require(twice.length === repeated, `${twice.length} came twice, ${repeated} were counted`);
    const known = new Set(final.map(({ device_id }) => deliveryKey(id, device_id)));
    for (const [key, at] of twice) {
      require(!known.has(key), `${key}: was final and is sent again`);
      // Only pushes of the dead process may repeat. Its last requests took up to the delay of the simulators.
      require(Math.min(...at) <= died + (answerMs + 500) * slow, `${key}: its first push came after the kill`);
    }
    const marked = (await project.deliveries(id)).filter(({ possible_repeat }) => possible_repeat);
    require(marked.length >= repeated, `${repeated} came twice, ${marked.length} are marked`);
    const wasUnmarked = new Set(final.flatMap((one) => (one.possible_repeat ? [] : [one.device_id])));
    const wrongly = marked.filter(({ device_id }) => wasUnmarked.has(device_id)).length;
    require(wrongly === 0, `${wrongly} were final and unmarked when it died, and are marked`);
    return {
      sent: everyone,
      final: deliveries,
      lost: lost.length * everyone,
      repeated: { marked: repeated - unmarked.length, unmarked: unmarked.length },
      recoveryMs: undefined,
      problems: [...problems, ...wrong].slice(0, 20),
      notes: [`${final.length} were final when it died, ${marked.length} may have come twice`],
    };
  },
};
