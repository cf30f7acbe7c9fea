import { setTimeout as delay } from "node:timers/promises";
import type { Instance } from "@herald/simulators";
import { eventually, expectStatus } from "@herald/testing";
import { startBeside } from "../../harness/beside.ts";
import { inParallel } from "../../harness/in-parallel.ts";
import type { Project } from "../../harness/project.ts";
import { seed } from "../../harness/seed.ts";
import type { System } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { slowness } from "../slowness.ts";
import { randomMoment } from "../trial.ts";

const app = "com.example.e2e";
const type = "OrderAttributes";
/** The newest state is everywhere within this time after the last write. */
export const shownWithinMs = 30_000;
/** Longer than the ack wait, so that the other replica takes over what the frozen one holds. */
const frozenMs = 10_000;
const refusedShare = 0.2;
/** Writes wait for gateways that restart, and for the limit of one version a second. */
const writtenWithinMs = 120_000;

type Card = { readonly id: string; readonly device: string; readonly instance: string };

const nOf = ({ contentState }: Instance["shown"][number]): number => Number((contentState as { n?: number }).n ?? 0);

/** Waits until each card shows a version, for so long at most. Resolves to all cards, and those that show another one. */
export const untilNewest = async (cards: () => Promise<Instance[]>, version: number, timeoutMs: number) => {
  const behind = async () => (await cards()).filter(({ shown }) => nOf(shown.at(-1) as never) !== version);
  const from = performance.now();
  await eventually(
    async () => {
      const late = await behind();
      if (late.length > 0) throw new Error(`${late.length} cards are behind`);
    },
    { timeoutMs },
  ).catch(() => {});
  const tookMs = performance.now() - from;
  return { late: await behind(), all: await cards(), tookMs };
};

/** Writes like a correct backend: again until the answer is a 202. */
export const writeSurely = (project: Project, route: string, activity: object) =>
  eventually(
    async () => {
      const answer = await project.call(route, { body: { activity } });
      if (answer.status === 429) await delay(1_000 * Number(answer.headers.get("retry-after") ?? 1)); // asked for
      if (answer.status !== 202) throw new Error(`${route}: answered ${answer.status}: ${answer.text}`);
    },
    { timeoutMs: writtenWithinMs },
  );

export const storeToken = (project: Project, { id, device }: Pick<Card, "id" | "device">, token: string | null) =>
  eventually(
    async () =>
      expectStatus(
        await project.call(`PUT /devices/${device}/tokens/activity/${id}`, { body: { token: { token } } }),
        204,
      ),
    { timeoutMs: writtenWithinMs },
  );

/** Activities that their apps have started, each on a phone of its own. */
const startCards = async ({ simulators }: System, project: Project, devices: readonly { id: string }[]) =>
  inParallel(devices, 8, async ({ id: device }, at): Promise<Card> => {
    const { id: instance, token } = await simulators.startInstance(app, type);
    const card = { id: `order-${at}`, device, instance };
    await writeSurely(project, `PUT /activities/${card.id}`, {
      ...{
        attributes_type: type,
        attributes: {},
        content_state: { n: 0 },
        targets: [`device:${device}`],
        start: false,
      },
    });
    await storeToken(project, card, token);
    return card;
  });

/** The cards that showed an older state after a newer one. */
export const wentBack = (cards: readonly Instance[]): string[] =>
  cards.flatMap(({ id, shown }) => {
    const states = shown.map(nOf);
    const back = states.findIndex((n, at) => n < (states[at - 1] ?? 0));
    return back < 0 ? [] : [`card ${id} went back to ${states[back]}: ${states.join(" ")}`];
  });

export const activities: Row = {
  name: "activities",
  fault:
    "200 Live Activities of 50 states (short: 20 of 10), two replicas of dispatch: kill -9 of one and of the gateway, SIGSTOP of the other for 10 s, 503 for 20 % of the pushes, changing tokens",
  pass: "no card shows an older state after a newer one; 30 s after the last write each shows the newest",
  run: async ({ long, shared, defer }) => {
    const system = await shared();
    const { simulators, services } = system;
    await simulators.script([{ provider: "apns", status: 503, share: refusedShare }]);
    const [count, versions, kills] = long ? [200, 50, 10] : [20, 10, 2];
    const project = await system.project("Orders");
    const cards = await startCards(system, project, await seed(system, project, count));
    const beside = await startBeside(system, "dispatch");
    defer(() => beside.stop());
    await beside.ready();

    let written = 0;
    const writing = inParallel(cards, count, async (card, at) => {
      for (let n = 1; n <= versions; n++) {
        await writeSurely(project, `PATCH /activities/${card.id}`, { content_state: { n }, sequence: n });
        written++;
        if (at % 5 === 0 && n === Math.floor(versions / 2))
          await storeToken(project, card, (await simulators.rotateInstance(card.instance)).token);
      }
    });
    const breaking = async () => {
      for (let kill = 0; kill < kills; kill++) {
        await randomMoment(2_000);
        await Promise.all([services.dispatch.kill(), ...(kill % 2 === 1 ? [services.gateway.kill()] : [])]);
        await services.dispatch.ready();
      }
    };
    const freezing = async () => {
      await randomMoment(2_000);
      process.kill(beside.pid, "SIGSTOP");
      await delay(frozenMs); // the fault itself
      process.kill(beside.pid, "SIGCONT");
    };
    // A state that is refused again and again is shown later than promised, by the delays of its retries.
    const refusing = writing.then(() => simulators.script([]));
    await Promise.all([writing, refusing, breaking(), freezing()]);

    const ofRow = async () => {
      const known = new Map((await simulators.instances()).map((instance) => [instance.id, instance]));
      return cards.flatMap(({ instance }) => known.get(instance) ?? []);
    };
    const { late, all, tookMs } = await untilNewest(ofRow, versions, shownWithinMs * (await slowness()));
    const problems = wentBack(all);
    const shown = all.reduce((sum, card) => sum + card.shown.length, 0);
    const arrived = all.reduce((sum, card) => sum + card.arrived.length, 0);
    return {
      sent: count * versions,
      final: written,
      lost: late.length,
      repeated: { marked: 0, unmarked: 0 },
      recoveryMs: tookMs,
      problems: [...problems, ...(all.length < count ? [`only ${all.length} of ${count} cards are there`] : [])],
      notes: [
        `${written} versions of ${count} activities; ${arrived} pushes arrived, ${shown} states were shown, ${problems.length} went back`,
      ],
    };
  },
};
