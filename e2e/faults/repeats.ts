import type { Project } from "../harness/project.ts";
import { deviceOf, payloadOf } from "../harness/simulators.ts";
import type { System } from "../harness/system.ts";
import type { Findings } from "./row.ts";

/** The pushes of a notification that APNs accepted, and what a row reports of them. `sent`: its devices. */
export async function pushesAndRepeats(system: System, project: Project, id: string, sent: number) {
  const accepted = await system.simulators.pushes({ provider: "apns", status: 200 });
  const pushes = accepted.filter((push) => payloadOf(push).notification_id === id);
  const rows = await project.deliveries(id);
  const marked = new Set(rows.filter((row) => row.possible_repeat).map((row) => row.device_id as string));
  const ofDevice = Map.groupBy(pushes, deviceOf);
  const repeated = [...ofDevice].flatMap(([device, own]) => (own.length > 1 ? [device] : []));
  const unmarked = repeated.filter((device) => !marked.has(device)).length;
  const repeats: Findings["repeated"] = { marked: repeated.length - unmarked, unmarked };
  return { pushes, lost: sent - ofDevice.size, repeated: repeats };
}
