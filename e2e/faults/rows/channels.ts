import { eventually } from "@herald/testing";
import { startBeside } from "../../harness/beside.ts";
import { inParallel } from "../../harness/in-parallel.ts";
import type { Row } from "../row.ts";
import { slowness } from "../slowness.ts";
import { randomMoment } from "../trial.ts";
import { shownWithinMs, storeToken, untilNewest, wentBack, writeSurely } from "./activities.ts";

const app = "com.example.e2e";
const type = "MatchAttributes";
/** Apple's answer about a channel takes so long: a kill before it loses the answer. */
const answerMs = 1_500;
const refusedShare = 0.2;

export const channels: Row = {
  name: "channels",
  fault:
    "100 Live Activities of 30 states (short: 12 of 6) via channels, two replicas of dispatch: kill -9 of both while Apple makes the channels, then of one, 503 for 20 % of the pushes and broadcasts",
  pass: "an activity has one channel at most, and tokens where its answer was lost; no card shows an older state after a newer one; 30 s after the last write each shows the newest; another sender's channel stays",
  run: async ({ long, shared, defer }) => {
    const system = await shared();
    const { simulators, services } = system;
    const [count, versions, kills] = long ? [100, 30, 5] : [12, 6, 1];
    const project = await system.project("Matches");
    const [foreign] = await simulators.makeChannels(app, 1);
    const before = (await simulators.channels(app)).length;
    const beside = await startBeside(system, "dispatch");
    defer(() => beside.stop());
    await beside.ready();

    const ids = Array.from({ length: count }, (_, at) => `match-${at}`);
    const matches = await inParallel(ids, 8, async (id) => {
      const { alert = "", ...tokens } = await simulators.phone(app, { activities: [type] });
      const startToken = tokens[`liveactivity/${type}`] ?? "";
      const { device } = await project.register({ token: alert });
      const body = { token: { token: startToken, channels: true } };
      await project.call(`PUT /devices/${device.id}/tokens/liveactivity/${type}`, { body });
      return { id, device: device.id as string, startToken };
    });
    const start = (some: typeof matches) =>
      inParallel(some, count, ({ id, device }) =>
        writeSurely(project, `PUT /activities/${id}`, {
          ...{ attributes_type: type, attributes: {}, content_state: { n: 0 }, targets: [device], via: "channel" },
          alert: { title: "Match", body: "It begins." },
        }),
      );
    const made = (least: number) =>
      eventually(async () => {
        if ((await simulators.channels(app)).length < before + least) throw new Error("no channel is made yet");
      });
    const half = count / 2;
    await start(matches.slice(0, half));
    await made(half);
    await simulators.script([{ tokenPrefix: `channels/${app}`, delayMs: answerMs }]);
    const starting = start(matches.slice(half));
    await made(half + 1);
    // Made, and not answered: only this process could store them.
    process.kill(beside.pid, "SIGKILL");
    await services.dispatch.kill();
    await services.dispatch.ready();
    await starting;

    const cards = async () => (await simulators.instances()).filter((card) => card.attributesType === type);
    const timeoutMs = shownWithinMs * (await slowness());
    await eventually(
      async () => {
        const started = (await cards()).length;
        if (started < count) throw new Error(`${started} of ${count} activities have started`);
      },
      { timeoutMs: 2 * timeoutMs },
    );
    for (const { startToken, ...match } of matches) {
      const card = (await simulators.instances(startToken))[0];
      if (card?.token) await storeToken(project, match, card.token);
    }
    await simulators.script([{ provider: "apns", status: 503, share: refusedShare }]);
    let written = 0;
    const writing = inParallel(matches, count, async ({ id }) => {
      for (let n = 1; n <= versions; n++) {
        await writeSurely(project, `PATCH /activities/${id}`, { content_state: { n }, sequence: n });
        written++;
      }
    });
    const breaking = async () => {
      for (let kill = 0; kill < kills; kill++) {
        await randomMoment(2_000);
        await services.dispatch.kill();
        await services.dispatch.ready();
      }
    };
    await Promise.all([writing.then(() => simulators.script([])), breaking()]);

    const { late, all, tookMs } = await untilNewest(cards, versions, timeoutMs);
    const left = await simulators.channels(app);
    const followed = new Set(all.flatMap(({ channel }) => channel ?? []));
    const lost = left.length - before - followed.size;
    return {
      sent: count * versions,
      final: written,
      lost: late.length,
      repeated: { marked: 0, unmarked: 0 },
      recoveryMs: tookMs,
      problems: [
        ...wentBack(all),
        ...(all.length === count ? [] : [`${all.length} cards of ${count} activities`]),
        ...(left.some(({ id }) => id === foreign) ? [] : ["another sender's channel is gone"]),
        ...(left.length - before > count ? [`${left.length - before} channels of ${count} activities`] : []),
        ...(followed.size < half ? ["too few activities have a channel"] : []),
        ...(lost === 0 ? ["no answer was lost: the fault did not happen"] : []),
      ],
      notes: [`${followed.size} activities have a channel, the answers about ${lost} were lost`],
    };
  },
};
