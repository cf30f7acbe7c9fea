import { eventually, expectStatus } from "@herald/testing";
import { pushesAndRepeats } from "../repeats.ts";
import type { Row } from "../row.ts";
import { randomMoment } from "../trial.ts";
import { hour, startZones, zoned } from "../zoned.ts";

/** Quiet hours end in the first zone at once, and in each of the others an hour later. */
const zones = ["Etc/GMT-4", "Etc/GMT-3", "Etc/GMT-2", "Etc/GMT-1"];
const victims = ["registry", "dispatch", "registry"] as const;

export const quietHours: Row = {
  name: "quiet-hours",
  fault:
    "kill -9 of dispatch and registry, with two replicas of dispatch, while devices of four zones wait for the end of quiet hours",
  pass: "once or marked for each device, and none before its hours end",
  fixture: zoned,
  run: async ({ long, use }) => {
    const { system, clock } = await use(zoned);
    const name = "Quiet hours under faults";
    const perZone = long ? 1_000 : 30;
    const { base, project, devices } = await startZones(system, clock.now(), name, { zones, perZone });
    const clockAt = (hours: number) => new Date(base + hours * hour).toISOString().slice(11, 16);
    const hours = { from: clockAt(-1), to: clockAt(4), mode: "delay" };
    expectStatus(
      await system.admin(`PATCH /projects/${project.id}`, { body: { project: { quiet_hours: hours } } }),
      200,
    );
    // A minute after the hour, when the first zone's quiet hours are over.
    const passedHours = (count: number) => clock.set(new Date(base + count * hour + 60_000));
    passedHours(0);
    const content = { title: "Good morning", targets: ["topic:world"], ttl: 12 * 3_600 };
    await eventually(async () => {
      const dry = await project.call("POST /notifications", { body: { notification: { ...content, dry_run: true } } });
      if (dry.body.data.delayed.length === 0) throw new Error("the quiet hours are not known yet");
    });
    const { id } = await project.send(content);
    const got = (count: number) =>
      eventually(
        async () => {
          const { counts } = await project.notification(id);
          if (counts.accepted !== count) throw new Error(`${counts.accepted} of ${count} got it`);
        },
        { timeoutMs: 120_000 },
      );
    await got(perZone);
    for (const [at, victim] of victims.entries()) {
      await system.services[victim].kill();
      await system.services[victim].ready();
      passedHours(at + 1);
      if (long || at !== 1) {
        await randomMoment(2_500);
        await system.services.dispatch.kill();
        await system.services.dispatch.ready();
      }
      await got(perZone * (at + 2));
    }
    const { counts } = await project.final(id, 180_000);
    const { pushes, ...findings } = await pushesAndRepeats(system, project, id, devices.length);
    const zoneOf = new Map(
      devices.map(({ token, identifiers }) => [token, zones.indexOf(identifiers.current_time_zone)]),
    );
    const early = pushes.filter(({ token, at }) => Date.parse(at) < base + (zoneOf.get(token) ?? 0) * hour);
    return {
      sent: devices.length,
      final: counts.devices - counts.pending,
      ...findings,
      recoveryMs: undefined,
      problems: early.map(({ token, at }) => `a push at ${at} was within the quiet hours of zone ${zoneOf.get(token)}`),
      notes: [`${victims.length * perZone} devices waited`],
    };
  },
};
