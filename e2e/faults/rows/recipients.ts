import { Herald, HeraldError } from "@herald/client";
import { type DeviceId, newDeviceId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { sendSurely } from "../../harness/load.ts";
import type { Content } from "../../harness/project.ts";
import { seed } from "../../harness/seed.ts";
import { deviceOf, payloadOf } from "../../harness/simulators.ts";
import { serviceNames } from "../../harness/system.ts";
import { pacedBody } from "../paced-body.ts";
import { replicated } from "../replicated.ts";
import type { Row } from "../row.ts";
import { crowd, platforms, randomMoment, startTrial } from "../trial.ts";

/** Every eighth line names a device that exists; of fifty, one is broken and one has the target of the line before it. */
const lineOf = (at: number, devices: readonly DeviceId[], targets: DeviceId[]): string => {
  if (at % 50 === 7) return "not JSON";
  const id = at % 50 === 9 ? targets[at - 1] : at % 8 === 0 ? devices[at / 8] : newDeviceId(new Date());
  targets[at] = id as DeviceId;
  return JSON.stringify({ target: `device:${id}`, variables: { n: at + 1 } });
};

const fileOf = (count: number, devices: readonly DeviceId[]): string[] => {
  const targets: DeviceId[] = [];
  return Array.from({ length: count }, (_, at) => `${lineOf(at, devices, targets)}\n`);
};

export const killedUpload: Row = {
  name: "recipients",
  fault:
    "kill -9 of one of two replicas of each service, and a restart of NATS, during an upload of recipients (short: once each, 14,400 lines)",
  pass: "the upload continues; each recipient gets its own text once; the counts add up",
  fixture: replicated,
  run: async ({ long, use }) => {
    const { system } = await use(replicated);
    const trial = await startTrial(system, { each: 1, perSecond: 5 });
    const { project } = trial;
    const faults = Array(long ? 4 : 1)
      .fill([...serviceNames, "nats"])
      .flat();
    // More than a chunk, which Herald stores when the line after it arrives.
    const ofStage = long ? 4_000 : 2_400;
    const count = ofStage * (faults.length + 1);
    const devices: DeviceId[] = [];
    for (const platform of platforms) {
      const seeded = await seed(system, project, count / 8 / platforms.length, { platform, prefix: crowd });
      devices.push(...seeded.map(({ id }) => id));
    }
    const lines = fileOf(count, devices);
    const id = await sendSurely(project, {
      ...{ title: "No. {{ n }}.", variables: { n: 0 }, recipients: { upload: "device" } },
    } as unknown as Content);
    trial.promise(id, devices.length);

    const { notifications } = new Herald({ url: system.gateway, token: project.token, maxRetries: 10 });
    let allowed = 0;
    const uploading = eventually(
      async () => {
        try {
          await notifications.uploadRecipients(id, () => pacedBody(lines, () => allowed));
        } catch (error) {
          if (!(error instanceof HeraldError)) throw error;
          throw new Error(`the upload broke: ${error.slug}`);
        }
      },
      { timeoutMs: 900_000 },
    );
    for (const victim of faults) {
      const before = allowed;
      allowed += ofStage;
      await eventually(
        async () => {
          if ((await notifications.recipients(id)).lines_stored <= before) throw new Error("not so far yet");
        },
        { timeoutMs: 300_000 },
      );
      await randomMoment(300);
      if (victim === "nats") await system.broker.restart();
      else await system.services[victim as "gateway"].kill();
      await Promise.all([trial.recovered(), system.ready()]);
    }
    allowed = count;
    await uploading;
    const findings = await trial.finish({ timeoutMs: 300_000 });

    const broken = lines.filter((line) => line === "not JSON\n").length;
    const doubles = Math.ceil((count - 9) / 50);
    const expected = {
      ...{ kind: "device", lines_stored: count, recipients: count - broken - doubles, refused: broken },
      ...{ processed: count - broken - doubles, duplicates: doubles, complete: true, errors_left_out: 0 },
      unmatched: count - broken - doubles - devices.length,
    };
    const counted = await notifications.recipients(id);
    for (const [name, number] of Object.entries(expected))
      if (counted[name as "refused"] !== number)
        trial.problem(`${name} should be ${number}, and is ${counted[name as "refused"]}`);
    const place = new Map(devices.map((device, at) => [device, at * 8 + 1]));
    let own = 0;
    for (const push of await system.simulators.pushes()) {
      if (payloadOf(push)?.notification_id !== id) continue;
      own++;
      const n = place.get(deviceOf(push) as DeviceId);
      if (!JSON.stringify(push.payload).includes(`"No. ${n}."`))
        trial.problem(`${deviceOf(push)} did not get text ${n}`);
    }
    trial.note(`${own} pushes of an upload of ${count} lines, beside ${faults.length} faults`);
    return findings;
  },
};
