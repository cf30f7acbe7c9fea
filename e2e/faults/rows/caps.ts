import { eventually, expectStatus } from "@herald/testing";
import { apnsToken, type Project } from "../../harness/project.ts";
import { registerAll } from "../../harness/register-all.ts";
import { payloadOf } from "../../harness/simulators.ts";
import type { Row } from "../row.ts";
import { randomMoment } from "../trial.ts";

const cap = 2;
const sendsOfEach = 5;
const sentAtOnce = 500;

/** Waits until dispatch applies the cap: a device that is sent to before would have no rules. */
const knowsCap = async (project: Project): Promise<void> => {
  await registerUsers(project, ["probe"], "probe");
  await eventually(async () => {
    const { id } = await project.send({ title: "Probe", kind: "offers", targets: ["user:probe"] });
    const { skips } = await project.final(id);
    if (!skips["frequency-cap"]) throw new Error("the cap is not known yet");
  });
};

/** Registers a device for each user. Resolves to the push tokens. */
const registerUsers = async (project: Project, users: readonly string[], topic: string): Promise<string[]> => {
  const devices = users.map((userId) => ({
    platform: "ios" as const,
    token: apnsToken(),
    user_id: userId,
    topics: [topic],
  }));
  await registerAll(project, devices);
  return devices.map(({ token }) => token);
};

/** One send to all of a topic, and one for each of the users. Resolves to their ids. */
const sendRound = async ({ send, call }: Project, n: number, users: readonly string[]): Promise<string[]> => {
  const content = { title: `Offer ${n}`, kind: "offers" };
  const ids = [(await send({ ...content, targets: ["topic:together"] })).id];
  for (let from = 0; from < users.length; from += sentAtOnce) {
    const targets = users.slice(from, from + sentAtOnce).map((user) => [`user:${user}`]);
    const notifications = targets.map((to) => ({ ...content, targets: to }));
    const { body } = expectStatus(await call("POST /notifications/batch", { body: { notifications } }), 202);
    ids.push(...body.data.map(({ id }: { id: string }) => id));
  }
  return ids;
};

export const caps: Row = {
  name: "caps",
  fault:
    "kill -9 of dispatch 20 times (short: 3) while 10,000 users (short: 200) get five sends of a kind capped at two",
  pass: "each user gets exactly two; the others are skipped",
  run: async ({ long, shared }) => {
    const system = await shared();
    const project = await system.project("Caps under faults");
    const put = { kind: { title: "Offers", frequency_cap: { count: cap, per: "week" } } };
    expectStatus(await system.admin(`PUT /projects/${project.id}/kinds/offers`, { body: put }), 201);
    const named = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
    const together = await registerUsers(project, named("together", long ? 8_000 : 150), "together");
    const users = named("alone", long ? 2_000 : 50);
    const alone = await registerUsers(project, users, "alone");
    await knowsCap(project);
    const ids: string[] = [];
    for (let n = 0; n < sendsOfEach; n++) {
      const sending = sendRound(project, n, users);
      for (let kill = 0; kill < (long ? 4 : (n + 1) % 2); kill++) {
        await randomMoment(300);
        await system.services.dispatch.kill();
        await system.services.dispatch.ready();
      }
      ids.push(...(await sending));
    }
    const problems: string[] = [];
    let [final, skipped, pending] = [0, 0, 0];
    for (const id of ids) {
      const { counts, skips } = await project.final(id, 300_000);
      final += counts.devices;
      pending += counts.pending;
      skipped += skips["frequency-cap"] ?? 0;
      if (counts.accepted + counts.skipped !== counts.devices) problems.push(`${id} has ${JSON.stringify(counts)}`);
    }
    const pushes = await system.simulators.pushes({ provider: "apns", status: 200 });
    const byToken = Map.groupBy(pushes, ({ token }) => token);
    let repeats = 0;
    for (const token of [...together, ...alone]) {
      const got = (byToken.get(token) ?? []).map((push) => payloadOf(push).notification_id);
      repeats += got.length - new Set(got).size;
      if (new Set(got).size !== cap) problems.push(`a user got ${new Set(got).size} notifications instead of ${cap}`);
    }
    const expected = (together.length + alone.length) * (sendsOfEach - cap);
    if (skipped !== expected) problems.push(`${skipped} deliveries were skipped by the cap instead of ${expected}`);
    return {
      sent: (together.length + alone.length) * sendsOfEach,
      final,
      lost: pending,
      // The provider got a repeat of what was sent when the process died; its row is marked, which other rows check.
      repeated: { marked: repeats, unmarked: 0 },
      recoveryMs: undefined,
      problems: problems.slice(0, 10),
      notes: [`${repeats} pushes were repeated, none of them took a slot`],
    };
  },
};
