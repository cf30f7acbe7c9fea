import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ExportedDevice, type ExportFormat, Herald, type Import } from "@herald/client";
import { type ImportFormat, Scope } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

const fixtures = join(import.meta.dirname, "../services/registry/src/imports/formats/fixtures");

let system: System;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

/** A project, and a client with all its scopes. */
const newWorld = async (name: string) => {
  const project = await system.project(name, ["apns", "fcm"]);
  const token = { name: "all", scopes: [...Scope.options] };
  const made = expectStatus(await system.admin(`POST /projects/${project.id}/tokens`, { body: { token } }), 201);
  return { project, herald: new Herald({ url: system.gateway, token: made.body.token }), token: made.body.token };
};
type World = Awaited<ReturnType<typeof newWorld>>;

const importFile = async ({ herald }: World, format: ImportFormat, file: string, type: string): Promise<Import> => {
  const { id } = await herald.imports.create({ format });
  await herald.imports.upload(id, () => file, { contentType: type });
  return eventually(
    async () => {
      const found = await herald.imports.get(id);
      expect(found.status).toBe("completed");
      return found;
    },
    { timeoutMs: 30_000 },
  );
};

const exportFile = async ({ herald }: World, format: ExportFormat): Promise<string> => {
  let file = "";
  for await (const { text } of herald.exports.lines("devices", format, { include: "keys" })) file += text;
  return file;
};

const types = { csv: "text/csv", ndjson: "application/x-ndjson", xml: "text/plain" } as const;
const typeOf = (name: string): string => types[name.split(".").at(-1) as keyof typeof types];

/** A device without the fields that belong to the project of the export. */
const portable = (exported: ExportedDevice) => {
  const { id: _, inactive_reason: __, identified_at: ___, created_at: ____, updated_at: _____, ...device } = exported;
  return { ...device, topics: device.topics.toSorted() };
};
const devicesOf = async ({ herald }: World) => {
  const devices = [];
  for await (const device of herald.exports.devices({ include: "keys" })) devices.push(portable(device));
  return devices.toSorted((one, other) => (one.token < other.token ? -1 : 1));
};

/** Sends to all devices. Each device gets a result, although the providers may refuse the made-up tokens. */
const sendToAll = async (project: Project) => {
  const { id } = await project.send({ title: "Hello", targets: ["all"] });
  const { counts } = await project.final(id, 60_000);
  expect(counts.pending).toBe(0);
};

test.for([
  ["pinpoint", "pinpoint.ndjson"],
  ["pinpoint", "pinpoint.csv"],
  ["sns", "sns.ndjson"],
  ["onesignal", "onesignal.csv"],
  ["firebase", "firebase.ndjson"],
  ["parse", "parse.ndjson"],
  ["pnta", "pnta.ndjson"],
  ["azure-nh", "azure-nh.xml"],
  ["herald", "gorush.csv"],
  ["herald", "herald.ndjson"],
] as const)("%s: what %s brings in is sent to, exported, and equal in another project", async ([format, name]) => {
  const from = await newWorld(`From ${name}`);
  const file = await readFile(join(fixtures, name), "utf8");
  const { created } = await importFile(from, format, file, typeOf(name));
  expect(created).toBeGreaterThan(0);
  await sendToAll(from.project);

  const devices = await devicesOf(from);
  expect(devices).toHaveLength(created);
  for (const [as, type] of [
    ["ndjson", "application/x-ndjson"],
    ["csv", "text/csv"],
  ] as const) {
    const to = await newWorld(`To ${name} as ${as}`);
    const exported = await exportFile(from, as);
    expect(await importFile(to, "herald", exported, type)).toMatchObject({ created: devices.length, refused: 0 });
    expect(await devicesOf(to)).toEqual(devices);
    expect(await importFile(to, "herald", exported, type)).toMatchObject({ unchanged: devices.length, refused: 0 });
  }
});
