import { type DataOf, idTime, NotificationUnopenedV1 } from "@herald/contracts";
import { eventually, expectStatus, request } from "@herald/testing";
import { eventsOf } from "../../harness/compare-events.ts";
import { inParallel } from "../../harness/in-parallel.ts";
import { deliveryKey } from "../../harness/ledger.ts";
import { sendSurely } from "../../harness/load.ts";
import { seed } from "../../harness/seed.ts";
import { payloadOf } from "../../harness/simulators.ts";
import { pushesAndRepeats } from "../repeats.ts";
import { replicated } from "../replicated.ts";
import type { Row } from "../row.ts";
import { randomMoment, single } from "../trial.ts";

const escalateAfter = 60;
const atATime = 32;
const killWithinMs = 400;
/** A killed process leaves what it claimed for a minute, and so may the next one. */
const eventsWithinMs = 300_000;

type Unopened = DataOf<typeof NotificationUnopenedV1>;

const keyOf = ({ notification_id: id, device_id: device, user_id: user = "", reason }: Unopened): string =>
  `${deliveryKey(id, device ?? user)} ${reason}`;

/** Of each send one device opens it, the other does not, and a user has no device. */
export const escalation: Row = {
  name: "escalation",
  fault:
    "kill -9 of dispatch or analytics, with two replicas, 20 times (short: 6), when the time to follow up 3,000 sends (short: 900) comes",
  pass: "one event for each user and device that did not open it, none for those that did; no repeat",
  fixture: replicated,
  run: async ({ long, use }) => {
    const { system, second } = await use(replicated);
    const [sends, kills] = long ? [3_000, 20] : [900, 6];
    const project = await system.project("Escalated");
    const [opener, other] = await seed(system, project, 2, { prefix: single });
    if (!opener || !other) throw new Error("no devices");

    const targets = [`device:${opener.id}`, `device:${other.id}`, "user:nobody"] as const;
    const content = { title: "Read me", targets: [...targets], escalate_after: escalateAfter };
    const ids = await inParallel(Array(sends).fill(content), atATime, (one) => sendSurely(project, one));
    for (const id of ids) await project.final(id, 60_000);
    const own = new Set(ids);
    const pushes = await system.simulators.pushes({ token: opener.token });
    await inParallel(pushes, atATime, async (push) => {
      const { notification_id: id, token } = payloadOf(push);
      if (!own.has(id)) return;
      const body = { project_id: project.id, token };
      expectStatus(await request(`${second}/api/v1`, `PUT /notifications/${id}/open`, { body }), 204);
    });

    const published = () => eventsOf<Unopened>(system, project, NotificationUnopenedV1);
    const moreThan = async (count: number, timeoutMs: number) =>
      eventually(
        async () => {
          const { length } = await published();
          if (length <= count) throw new Error(`there are ${length} events, and no more`);
          return length;
        },
        { timeoutMs },
      );
    await moreThan(0, 2 * escalateAfter * 1_000);
    for (let kill = 0; kill < kills; kill++) {
      await randomMoment(killWithinMs);
      const victim = system.services[kill % 3 === 2 ? "analytics" : "dispatch"];
      await victim.kill();
      await victim.ready();
    }

    const problems: string[] = [];
    await moreThan(2 * ids.length - 1, eventsWithinMs).catch((error: Error) => problems.push(error.message));
    const all = await published();
    const expected = ids.flatMap((id) => [
      `${deliveryKey(id, other.id)} unopened`,
      `${deliveryKey(id, "nobody")} no-active-device`,
    ]);
    if (all.map(keyOf).toSorted().join() !== expected.toSorted().join())
      problems.push(`${all.length} events, ${new Set(all.map(keyOf)).size} different, of ${expected.length}`);
    const sums = { final: 0, lost: 0, repeated: { marked: 0, unmarked: 0 } };
    for (const id of ids) {
      const { lost, repeated } = await pushesAndRepeats(system, project, id, 2);
      sums.final += 2 - lost;
      sums.lost += lost;
      sums.repeated.marked += repeated.marked;
      sums.repeated.unmarked += repeated.unmarked;
    }
    const lateMs = (2 * escalateAfter - 10) * 1_000;
    const late = all.filter(({ notification_id: id, at }) => Date.parse(at) - idTime(id).getTime() > lateMs).length;
    const notes = [`${all.length} events, ${late} of them a minute late`];
    return { ...sums, sent: 2 * ids.length, recoveryMs: undefined, problems, notes };
  },
};
