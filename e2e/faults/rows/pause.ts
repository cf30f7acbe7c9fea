import { setTimeout as delay } from "node:timers/promises";
import { NotificationPausedV1, NotificationResumedV1, ProjectPausedV1, ProjectResumedV1 } from "@herald/contracts";
import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { startReplicas } from "../../harness/beside.ts";
import { eventsOf } from "../../harness/compare-events.ts";
import { payloadOf, wasAccepted } from "../../harness/simulators.ts";
import type { System } from "../../harness/system.ts";
import type { Fixture, Row } from "../row.ts";
import { crowd, randomMoment, seconds, startTrial, type Trial } from "../trial.ts";
import { bootstrap, clocked, hurry, loseData } from "./broker-lost.ts";

/** Pushes that had begun, and those of a process that waits for a processor, may still go out this long after the answer to a pause. */
const graceMs = 3_000;
/** Rows that a process holds after it missed the resume are found by a sweep every 30 s. */
const finalWithinMs = 120_000;

/** A time in which nothing may be sent: of one notification, or of the project. */
type Paused = { readonly from: number; readonly to: number; readonly notificationId?: string };

const pausable = (system: System, trial: Trial) => {
  const pauses: Paused[] = [];
  /** Calls twice at once, as two people do; again and again while a service is down. Resolves to whether one of them was in time. */
  const twice = async (call: () => Promise<{ status: number }>): Promise<boolean> => {
    const surely = () =>
      eventually(
        async () => {
          const { status } = await call();
          if (status !== 200 && status !== 409) throw new Error(`answered ${status}`);
          return status;
        },
        { timeoutMs: 60_000 },
      );
    return (await Promise.all([surely(), surely()])).includes(200);
  };
  return {
    /** Pauses, waits for `meanwhile`, and resumes. A broadcast may have ended before. */
    during: async (meanwhile: () => Promise<unknown>, notificationId?: string) => {
      const call = (verb: "pause" | "resume") =>
        notificationId === undefined
          ? system.admin(`POST /projects/${trial.project.id}/${verb}`)
          : trial.project.call(`POST /notifications/${notificationId}/${verb}`);
      const isPaused = await twice(() => call("pause"));
      const from = Date.now() + graceMs;
      await Promise.all([meanwhile(), delay(graceMs + 1_000)]);
      const to = Date.now();
      await twice(() => call("resume"));
      if (isPaused) pauses.push({ from, to, ...(notificationId !== undefined && { notificationId }) });
    },
    /** Reports what was sent in spite of a pause. */
    expectNothingSent: async () => {
      const isOfProject = (push: Push) => wasAccepted(push) && payloadOf(push)?.project_id === trial.project.id;
      const pushes = (await system.simulators.pushes()).filter(isOfProject);
      for (const { from, to, notificationId } of pauses) {
        const sent = pushes.filter(
          (push) =>
            (notificationId ?? payloadOf(push).notification_id) === payloadOf(push).notification_id &&
            Date.parse(push.at) > from &&
            Date.parse(push.at) < to,
        );
        if (sent.length > 0)
          trial.problem(
            `${sent.length} were sent while ${notificationId ?? "the project"} was paused: ` +
              `${sent[0]?.at}, paused from ${new Date(from).toISOString()} to ${new Date(to).toISOString()}`,
          );
      }
      const totalMs = pauses.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0);
      trial.note(`${pauses.length} pauses, in which nothing might be sent for ${seconds(totalMs)}`);
    },
    /** Reports pauses and resumes without an event, or with several. */
    expectEvents: async () => {
      const [ofNotification, ofProject] = [pauses.filter((one) => one.notificationId), pauses];
      const expected = [
        [NotificationPausedV1, ofNotification.length],
        [NotificationResumedV1, ofNotification.length],
        [ProjectPausedV1, ofProject.length - ofNotification.length],
        [ProjectResumedV1, ofProject.length - ofNotification.length],
      ] as const;
      for (const [contract, count] of expected)
        await eventually(
          async () => {
            const { length } = await eventsOf<unknown>(system, trial.project, contract);
            if (length !== count) throw new Error(`${count} changes have ${length} events ${contract.filter}`);
          },
          { timeoutMs: 20_000 },
        ).catch((error: Error) => trial.problem(error.message));
    },
  };
};

/** Few pushes in flight, so that a pause comes in the middle of a broadcast; and two replicas of each service. */
const slowReplicas: Fixture<System> = {
  open: async ({ start, defer }) => {
    const system = await start({ env: { HERALD_DISPATCH_IN_FLIGHT: "50" } });
    await startReplicas(system, defer);
    return system;
  },
};

const kills: Row = {
  name: "pause-kills",
  fault:
    "kill -9 of dispatch or registry, with two replicas, 10 times (short: 6) while a broadcast or its project is paused and resumed, each by two requests at once",
  pass: "nothing is sent from 3 s after a pause until its resume; then each device once or marked; one event for each change",
  fixture: slowReplicas,
  run: async ({ long, use }) => {
    const system = await use(slowReplicas);
    const trial = await startTrial(system, {
      ...{ each: 150, script: [{ tokenPrefix: crowd, delayMs: 300 }], perSecond: 5 },
    });
    const { during, expectNothingSent, expectEvents } = pausable(system, trial);
    for (let round = 0; round < (long ? 10 : 6); round++) {
      const id = await trial.broadcast();
      const victim = system.services[round % 3 === 2 ? "registry" : "dispatch"];
      // Its resume may come before it is back: what it held continues all the same.
      const kill = async () => {
        await randomMoment(1_500);
        await victim.kill();
      };
      await randomMoment(500);
      const killing = round % 2 === 0 ? kill() : undefined;
      const meanwhile = () => Promise.all([randomMoment(5_000), killing ?? kill()]);
      await during(meanwhile, round % 3 === 0 ? undefined : id);
      await victim.ready();
    }
    await trial.recovered();
    const findings = await trial.finish({ timeoutMs: finalWithinMs });
    await expectNothingSent();
    await expectEvents();
    return findings;
  },
};

const lost: Row = {
  name: "pause-lost",
  fault: "NATS loses all data while a project is paused, dispatch and registry die, bootstrap creates it again",
  pass: "nothing is sent until the project is resumed, and then everything that the database has",
  fixture: clocked,
  run: async ({ use }) => {
    const { system, clock } = await use(clocked);
    const trial = await startTrial(system, { each: 60, perSecond: 0 });
    const { during, expectNothingSent } = pausable(system, trial);
    const { project } = trial;
    const id = await trial.broadcastUnderWay();
    await during(async () => {
      const waiting = await trial.broadcast();
      // Otherwise only the broker has it, which loses it.
      await eventually(async () => {
        const stored = new Set<string>((await project.notifications()).map((one) => one.id));
        for (const one of [id, waiting]) if (!stored.has(one)) throw new Error(`${one} is not stored`);
      });
      await loseData(system);
      await bootstrap(system);
      // Another project's sends go on, so dispatch knows by then that this one is paused.
      await trial.recovered();
      await system.ready();
    });
    const stop = hurry(clock);
    const findings = await trial.finish({ timeoutMs: 180_000, events: false }).finally(stop);
    await expectNothingSent();
    return findings;
  },
};

export const pauseRows: readonly Row[] = [kills, lost];
