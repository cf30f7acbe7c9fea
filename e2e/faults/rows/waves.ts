import { eventually } from "@herald/testing";
import type { ServiceName } from "../../harness/system.ts";
import { pushesAndRepeats } from "../repeats.ts";
import type { Row } from "../row.ts";
import { randomMoment } from "../trial.ts";
import { hour, startZones, zoned } from "../zoned.ts";

/** From east to west, an hour apart. */
const allZones = Array.from({ length: 12 }, (_, at) => `Etc/GMT${at < 6 ? `-${6 - at}` : `+${at - 6}`}`).map((zone) =>
  zone === "Etc/GMT+0" ? "UTC" : zone,
);

/** Who dies in each wave, and whether in the middle of it or before it. A service that dies often at once waits longer for its restart. */
const kills: readonly (readonly [ServiceName, "before" | "within"])[] = [
  ["dispatch", "before"],
  ["registry", "within"],
  ["gateway", "before"],
  ["dispatch", "within"],
  ["registry", "before"],
  ["analytics", "within"],
];

export const waves: Row = {
  name: "waves",
  fault:
    "kill -9 of a service, with two replicas of dispatch, at the beginning of each of twelve waves (short: six) and between them",
  pass: "each wave begins once; once or marked for each device; a late change is refused",
  fixture: zoned,
  run: async ({ long, use }) => {
    const { system, clock } = await use(zoned);
    const [perZone, zones] = long ? [500, allZones] : [30, allZones.slice(0, kills.length)];
    const name = "Waves under faults";
    const { base, project, devices } = await startZones(system, clock.now(), name, { zones, perZone });
    // Clocks six hours ahead of UTC show it an hour after `base`.
    const local = new Date(base + 7 * hour).toISOString().slice(0, 19);
    const { id } = await project.send({
      title: "Wave",
      targets: ["topic:world"],
      send_at: local,
      time_zone: "device",
      past: "now",
      ttl: 3 * 3_600,
    });
    await eventually(async () => {
      const { schedule } = await project.notification(id);
      if (schedule?.length !== zones.length) throw new Error(`${schedule?.length} waves are planned`);
    });
    const problems: string[] = [];
    for (const [at] of zones.entries()) {
      const [victim, when] = kills[at % kills.length] ?? ["dispatch", "before"];
      const kill = async () => {
        await system.services[victim].kill();
        await system.services[victim].ready();
      };
      if (when === "before") await kill();
      clock.set(new Date(base + (at + 1) * hour + 1_000));
      if (when === "within") {
        await randomMoment(2_500);
        await kill();
      }
      await eventually(
        async () => {
          const { schedule = [] } = await project.notification(id);
          if (schedule[at]?.devices === undefined) throw new Error(`wave ${at} is ${schedule[at]?.status}`);
        },
        { timeoutMs: 120_000 },
      );
      const late = await project.call(`PATCH /notifications/${id}`, { body: { notification: { ttl: 60 } } });
      if (late.status !== 409) problems.push(`a change after wave ${at} was answered with ${late.status}`);
    }
    const { counts, schedule = [] } = await project.final(id, 180_000);
    if (schedule.some((wave) => wave.devices !== perZone))
      problems.push(`the waves had ${schedule.map((wave) => wave.devices).join(", ")} devices`);
    if (counts.accepted !== devices.length) problems.push(`the counts are ${JSON.stringify(counts)}`);
    const { lost, repeated } = await pushesAndRepeats(system, project, id, devices.length);
    return {
      sent: devices.length,
      final: counts.devices - counts.pending,
      lost,
      repeated,
      recoveryMs: undefined,
      problems,
      notes: [`${schedule.length} waves`],
    };
  },
};
