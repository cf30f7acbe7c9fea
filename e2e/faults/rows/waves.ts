import { eventually } from "@herald/testing";
import { serviceNames } from "../../harness/system.ts";
import { pushesAndRepeats } from "../repeats.ts";
import type { Row } from "../row.ts";
import { randomMoment } from "../trial.ts";
import { hour, startZoned } from "../zoned.ts";

/** From east to west, an hour apart. */
const zones = Array.from({ length: 12 }, (_, at) => `Etc/GMT${at < 6 ? `-${6 - at}` : `+${at - 6}`}`).map((zone) =>
  zone === "Etc/GMT+0" ? "UTC" : zone,
);

export const waves: Row = {
  name: "waves",
  fault:
    "kill -9 of a service at the beginning of each of twelve waves and between them, with two replicas of dispatch",
  pass: "each wave begins once, each device gets the push once or marked, and a late change is refused",
  run: async (stage) => {
    const perZone = stage.long ? 500 : 50;
    const { clock, system, base, project, devices } = await startZoned(stage, "Waves under faults", { zones, perZone });
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
      const victim = serviceNames[at % serviceNames.length] ?? "dispatch";
      if (at % 2 === 0) {
        await system.services[victim].kill();
        await system.services[victim].ready();
      }
      clock.set(new Date(base + (at + 1) * hour + 1_000));
      if (at % 2 === 1) {
        await randomMoment(2_500);
        await system.services[victim].kill();
        await system.services[victim].ready();
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
