import {
  deviceRequests,
  type EntryProblem,
  type ProjectId,
  PutDeviceResult,
  PutDevices,
  putDevicesLimits,
} from "@herald/contracts";
import { createYieldIfDue, pointerTo } from "@herald/kit";
import { z } from "zod";
import { project } from "../auth/caller.ts";
import type { SendRequest } from "../bus-connection.ts";
import { ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";

/** The maximum of one request to registry, which must fit into a message of 1 MiB. */
const maxGroup = { devices: 500, bytes: 524_288 } as const;

const problemAt =
  (at: number) =>
  ({ field, detail, code }: EntryProblem) => ({
    pointer: pointerTo(["devices", at, ...(field === "" ? [] : field.split("."))]),
    detail,
    code,
  });

const refusedAt = (at: number): PutDeviceResult => ({
  result: "refused",
  problems: [
    problemAt(at)({
      field: "",
      detail: `must be at most ${putDevicesLimits.deviceBytes} bytes of JSON`,
      code: "too-large",
    }),
  ],
});

/** Sends the devices in groups, one after another, so that of two entries for one device the later one counts. */
const putAll = async (
  sendRequest: SendRequest,
  projectId: ProjectId,
  devices: readonly unknown[],
): Promise<PutDeviceResult[]> => {
  const yieldIfDue = createYieldIfDue();
  const results: PutDeviceResult[] = [];
  /** Devices with their positions in the body. */
  let group: { readonly at: number; readonly device: unknown }[] = [];
  let bytes = 0;
  const sendGroup = async () => {
    if (group.length === 0) return;
    const answer = await sendRequest(deviceRequests.put, { projectId, devices: group.map(({ device }) => device) });
    for (const [index, result] of answer.results.entries()) {
      const at = group[index]?.at ?? 0;
      results[at] =
        result.result === "refused" ? { result: "refused", problems: result.problems.map(problemAt(at)) } : result;
    }
    group = [];
    bytes = 0;
  };
  for (const [at, device] of devices.entries()) {
    const size = Buffer.byteLength(JSON.stringify(device)) + 1;
    if (size > putDevicesLimits.deviceBytes) {
      results[at] = refusedAt(at);
      continue;
    }
    if (group.length === maxGroup.devices || bytes + size > maxGroup.bytes) await sendGroup();
    group.push({ at, device });
    bytes += size;
    await yieldIfDue();
  }
  await sendGroup();
  return results;
};

export const putDevicesRoute = defineRoute("putDevices", "put /api/v1/devices", {
  summary: "Create or update up to 1,000 devices",
  description:
    "Herald finds each device by its platform and push token: a new one is created, a known one updated as by `POST /devices`, except that no credential is made or rotated, and that it stays inactive if it is. A device without a credential gets one when its app identifies it. Each device is accepted or refused by itself; the results are in the order of the request. Sending the same devices again changes nothing. The body may have 4 MiB, each device 64 KiB. For files, use `POST /imports`.",
  access: project("devices"),
  body: PutDevices,
  bodyLimitBytes: putDevicesLimits.bodyBytes,
  bodyMaxValues: putDevicesLimits.values,
  responses: {
    200: { description: "One result for each device", schema: dataOf(z.array(PutDeviceResult)) },
  },
  errors: ["topic-exists"],
  handle: async ({ sendRequest }, { caller: { projectId }, body: { devices } }) =>
    ok(await putAll(sendRequest, projectId, devices)),
});
