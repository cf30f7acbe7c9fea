import { gzipSync } from "node:zlib";
import { Herald } from "@herald/client";
import { type DeviceId, newDeviceId } from "@herald/contracts";
import { expect } from "vitest";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import type { Content } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

/** Ten chunks of an upload. */
const count = process.env.HERALD_TEST_LONG ? 100_000 : 20_000;
/** Every fiftieth line names a device that exists; of a thousand, one is broken and one is the double of an earlier line. */
const [ofKnown, ofOthers] = [50, 1_000];

const fileOf = (known: readonly DeviceId[]): Buffer => {
  const ids: DeviceId[] = [];
  const rows = Array.from({ length: count }, (_, at) => {
    if (at % ofOthers === 11) return `topic:news,${at}`;
    const double = at % ofOthers === 999 ? ids[at - 949] : undefined;
    ids[at] = double ?? (at % ofKnown === 0 ? known[at / ofKnown] : undefined) ?? newDeviceId(new Date());
    return `device:${ids[at]},${at}`;
  });
  return gzipSync(`target,n\n${rows.join("\n")}\n`);
};

test(`${count} lines with doubles, unknown and broken ones are sent once each, over two uploads`, {
  timeout: 240_000,
}, async () => {
  const project = await system.project("Many recipients");
  const { notifications } = new Herald({ url: system.gateway, token: project.token, maxRetries: 0 });
  const known = (await seed(system, project, count / ofKnown)).map(({ id }) => id);
  const file = fileOf(known);
  const { id } = await project.send({
    ...{ title: "No. {{ n }}.", variables: { n: "" }, recipients: { upload: "device" } },
  } as unknown as Content);
  const upload = async (body: Buffer, query = "") => {
    const response = await fetch(`${system.gateway}/api/v1/notifications/${id}/recipients${query}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${project.token}`, "content-type": "text/csv" },
      body: new Uint8Array(body),
    });
    return response.status;
  };
  // A file without its end breaks the first upload.
  expect(await upload(file.subarray(0, Math.floor(file.length * 0.6)))).toBe(400);
  const { lines_stored: stored } = await notifications.recipients(id);
  expect(stored).toBeGreaterThan(count / 3);
  expect(stored).toBeLessThan(count);
  expect(await upload(file, `?after_line=${stored}`)).toBe(200);

  expect(await checkInvariants(system, project, [{ id, devices: known.length }], { timeoutMs: 120_000 })).toMatchObject(
    { ...nothingBroken, repeated: 0, deliveries: known.length },
  );
  const others = count / ofOthers;
  expect(await notifications.recipients(id)).toEqual({
    ...{ kind: "device", lines_stored: count + 1, complete: true, errors_left_out: 0 },
    ...{ recipients: count - 2 * others, processed: count - 2 * others, refused: others, duplicates: others },
    unmatched: count - 2 * others - known.length,
  });
  const place = new Map(known.map((device, at) => [device, at * ofKnown]));
  const wrong = (await system.simulators.pushes()).filter(
    (push) =>
      payloadOf(push)?.notification_id === id &&
      (payloadOf(push).aps?.alert as { title?: string } | undefined)?.title !==
        `No. ${place.get(deviceOf(push) as DeviceId)}.`,
  );
  expect(wrong).toEqual([]);
  const { data } = await notifications.recipientErrors(id, { perPage: 2 }).page();
  expect(data).toMatchObject([
    { line: 3, code: "unmatched" },
    { line: 4, code: "unmatched" },
  ]);
});
