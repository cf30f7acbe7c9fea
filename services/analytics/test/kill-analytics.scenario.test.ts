import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { publish, sendRequest } from "@herald/bus";
import { DeliveryAcceptedV1, NotificationOpenedV1, OpenGroupV1, openRequests, type Platform } from "@herald/contracts";
import { eventually, readPublished } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openedEvent } from "../src/domain/report.ts";
import { rebuildStatistics } from "../src/rebuild/rebuild-statistics.ts";
import {
  type AnalyticsTest,
  accept,
  messageId as id,
  opensAt,
  sample,
  startAnalyticsTest,
} from "./analytics-fixture.ts";

/** A size for every run, and that of the documented guarantees. */
const [opensInAll, kills] = process.env.HERALD_TEST_LONG ? ([100_000, 20] as const) : ([2_400, 3] as const);
/** After each kill, messages are redelivered after their ack wait of 6 s, to processes that need as long to start on a busy machine. */
const timeoutMs = 120_000 + kills * 30_000;

let t: AnalyticsTest;
beforeAll(async () => {
  t = await startAnalyticsTest({ withApp: false });
});
afterAll(() => t?.stop());

/** Compiling is half the cost of starting a process. */
const loading = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };
const root = join(import.meta.dirname, "../../..");

/** Starts an analytics process, and starts it again each time it dies. */
const keepRunning = () => {
  let stopping = false;
  let child: ChildProcess;
  const start = () => {
    child = spawn(process.execPath, ["--conditions=@herald/source", join(root, "services/analytics/src/main.ts")], {
      env: { ...loading, ...t.environment },
      stdio: "ignore",
    });
    child.once("exit", () => {
      if (!stopping) start();
    });
  };
  start();
  return {
    kill: () => child.kill("SIGKILL"),
    stop: async () => {
      stopping = true;
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    },
  };
};

test(
  `two processes that are killed ${kills} times count ${opensInAll} opens once each, and publish each once`,
  async () => {
    const [one, other] = [sample(), sample()];
    const platforms: Platform[] = ["ios", "android", "web"];
    const reports = Array.from({ length: opensInAll / 100 }, (_, index) =>
      opensAt(
        index % 4 === 3 ? other : one,
        Array.from({ length: 100 }, (_, at) => new Date(Date.UTC(2030, 2, 30, 12, index % 600, at % 60)).toISOString()),
        platforms[index % 3],
      ),
    );
    const batches = reports.map((_, index) =>
      accept(index % 4 === 3 ? other : one, "2030-03-30T12:30:00Z", 150, platforms[index % 3]),
    );
    // Sends to one device each, whose events share documents with the events of other sends.
    const singles = Array.from({ length: reports.length * 5 }, () =>
      accept({ ...one, notificationId: sample().notificationId }, "2030-03-30T12:30:00Z", 1),
    );
    const processes = [keepRunning(), keepRunning()];
    try {
      const publishing = (async () => {
        for (const [index, report] of reports.entries()) {
          await publish(t.bus, OpenGroupV1, report, id());
          const batch = batches[index];
          if (batch) await publish(t.bus, DeliveryAcceptedV1, batch, id());
          // Some of them twice, among other messages.
          for (const single of singles.slice(Math.max(0, index * 5 - 2), index * 5 + 5))
            await publish(t.bus, DeliveryAcceptedV1, single, id());
          // Every tenth is reported twice, as by an app that got no reply.
          if (index % 10 === 0) await publish(t.bus, OpenGroupV1, report, id());
        }
      })();
      const opens = t.db.collection("opens");
      for (let kill = 0; kill < kills; kill++) {
        // Kills in the middle of the work. Every third time it kills both processes, so that none is left to continue.
        const share = Math.floor((opensInAll * (kill + 0.5)) / kills);
        await eventually(async () => expect(await opens.countDocuments()).toBeGreaterThanOrEqual(share), { timeoutMs });
        for (const process of kill % 3 === 2 ? processes : processes.slice(kill % 2).slice(0, 1)) process.kill();
      }
      await publishing;

      const wanted = (of: typeof one) =>
        reports.filter(({ projectId }) => projectId === of.projectId).flatMap((report) => report.opens);
      const figures = async () =>
        Promise.all(
          [one, other].map(async ({ projectId, notificationId }) => {
            const range = { to: "2030-04-01T00:00:00.000Z", notificationId };
            const all = await t.stats(projectId, range);
            const each = await Promise.all(platforms.map((platform) => t.stats(projectId, { ...range, platform })));
            const { counts } = await sendRequest(t.bus, openRequests.count, {
              projectId,
              notificationIds: [notificationId],
            });
            return {
              sent: all.totals.sent,
              opened: all.totals.opened,
              byPlatform: each.map(({ totals }) => totals.opened),
              counted: counts[notificationId],
            };
          }),
        );
      const expected = [one, other].map((of) => {
        const opened = wanted(of);
        const sent = batches.filter(({ project_id }) => project_id === of.projectId).length * 150;
        const byPlatform = platforms.map((platform) => opened.filter((open) => open.platform === platform).length);
        return { sent, opened: opened.length, byPlatform, counted: opened.length };
      });
      await eventually(async () => expect(await figures()).toEqual(expected), { timeoutMs });
      const sent = (expected[0]?.sent ?? 0) + singles.length;
      const ofProject = async () => (await t.stats(one.projectId, { to: "2030-04-01T00:00:00.000Z" })).totals.sent;
      await eventually(async () => expect(await ofProject()).toBe(sent), { timeoutMs });
      const hours = { scope: { $regex: "^hours/" }, "quarters.30.sent.ios": 1 };
      expect(await t.db.collection("rollups").countDocuments(hours)).toBe(singles.length);
      expect(await opens.countDocuments()).toBe(opensInAll);
      // A group of opens is acked after its events are published.
      const left = () => t.hands.left("PUSH_OPENS", "analytics-open-groups");
      await eventually(async () => expect(await left()).toBe(0), { timeoutMs });

      const ids = (await readPublished(t.broker, NotificationOpenedV1.filter)).map(({ headers }) => headers["ce-id"]);
      const facts = [one, other].flatMap((of) =>
        wanted(of).map((open) => openedEvent({ ...open, projectId: of.projectId, at: new Date(open.openedAt) }).id),
      );
      expect(ids.length).toBe(opensInAll);
      expect(new Set(ids)).toEqual(new Set(facts));

      // Many processes with kills have made the same statistics as a rebuild alone.
      await Promise.all(processes.splice(0).map((process) => process.stop()));
      await rebuildStatistics(t.db, t.stores(), () => {});
      await t.restart();
      expect(await figures()).toEqual(expected);
      expect(await ofProject()).toBe(sent);
    } finally {
      await Promise.all(processes.map((process) => process.stop()));
    }
  },
  timeoutMs * 3,
);
