import { publish } from "@herald/bus";
import {
  ImportChunkV1,
  type ImportFormat,
  importLimits,
  importRequests,
  newImportId,
  type ProjectId,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { beforeEach, expect, test } from "vitest";
import { useRegistry } from "./registry-fixture.ts";

const registry = useRegistry();
let projectId: ProjectId;
beforeEach(async () => {
  projectId = await registry.project();
});

type File = {
  readonly format: ImportFormat;
  readonly dryRun?: boolean;
  readonly header?: string;
  /** The lines of each chunk. */
  readonly chunks: readonly (readonly string[])[];
  /** How often each chunk is delivered. */
  readonly times?: number;
};

/** Imports a file and returns its report. */
const importFile = async ({ format, dryRun = false, header, chunks, times = 1 }: File) => {
  const importId = newImportId(new Date());
  await registry.ask(importRequests.create, { projectId, importId, format, dryRun });
  let firstLine = 1;
  for (const [index, lines] of chunks.entries()) {
    const content = lines.map((text, at) => ({ n: firstLine + at, text }));
    const last = index === chunks.length - 1;
    const at = new Date().toISOString();
    const chunk = { projectId, importId, firstLine, lines: lines.length, last, at, content, ...(header && { header }) };
    const deliveries = Array.from({ length: times }, (_, n) =>
      publish(registry.bus, ImportChunkV1, chunk, { id: `${importId}/${index}/${n}` }),
    );
    await Promise.all(deliveries);
    firstLine += lines.length;
  }
  return eventually(
    async () => {
      const found = await registry.ask(importRequests.get, { projectId, importId });
      expect(found.status).toBe("completed");
      return found;
    },
    { timeoutMs: 30_000 },
  );
};

const header =
  "ChannelType,Address,User.UserId,Attributes.plan,Demographic.Locale,Demographic.Timezone,Demographic.Make,EffectiveDate";
const pinpoint: File = {
  format: "pinpoint",
  header,
  chunks: [
    [
      "GCM,t1,ann,pro,de_DE,Europe/Berlin,google,2026-03-01T08:00:00.000Z",
      "GCM,t2,,,en_US,Mars/Base,google,",
      "EMAIL,ann@example.com,ann,,,,,",
    ],
    ["GCM,not a token,bob,,fr_FR,,lg,soon", "GCM,t3,bob,pro,,,lg,soon"],
  ],
};
const said = {
  refused: 2,
  unsupported: 1,
  lines_with: { user_id: 2, time_zone: 1, locale: 2, last_seen_at: 1 },
  unused: [
    { field: "Demographic.Make", reason: "unknown", lines: 4 },
    { field: "EffectiveDate", reason: "invalid", lines: 2 },
    { field: "Demographic.Timezone", reason: "invalid", lines: 1 },
  ],
  renamed: [],
};

test("a dry run says what devices would get, and which fields they would not", async () => {
  expect(await importFile({ ...pinpoint, dryRun: true })).toMatchObject({ ...said, dry_run: true, created: 3 });
  expect(await registry.db.collection("devices").countDocuments({ projectId })).toBe(0);
});

test("the import says the same, counts each chunk once, and so does the same file again", async () => {
  expect(await importFile({ ...pinpoint, times: 3 })).toMatchObject({ ...said, created: 3, unchanged: 0 });
  const devices = await registry.db.collection("devices").find({ projectId }).sort({ token: 1 }).toArray();
  expect(devices).toMatchObject([
    { userId: "ann", metadata: { plan: "pro" }, identifiers: { current_locale: "de-DE" } },
    { identifiers: { current_locale: "en-US" } },
    { userId: "bob", metadata: { plan: "pro" } },
  ]);
  expect(await importFile(pinpoint)).toMatchObject({ ...said, created: 0, unchanged: 3 });
});

test("lines without a provider leave room for the errors of others", async () => {
  const ofEmail = Array.from({ length: importLimits.chunkLines }, () => "EMAIL,ann@example.com");
  const chunks = [...Array.from({ length: 11 }, () => ofEmail), ["GCM,not a token"]];
  const found = await importFile({ format: "pinpoint", dryRun: true, header: "ChannelType,Address", chunks });
  const kept = importLimits.unsupportedErrors;
  expect(found).toMatchObject({ refused: 5_501, unsupported: 5_500, errors_left_out: 5_500 - kept });
  const page = { by: "page", page: kept + 1, perPage: 1 } as const;
  const { data } = await registry.ask(importRequests.errors, { projectId, importId: found.id, page });
  expect(data).toMatchObject([{ line: 5_501, field: "token", code: "invalid-value" }]);
});

test("says where renamed fields are, and leaves all this out of lists", async () => {
  const lines = [
    {
      deviceType: "android",
      deviceToken: "t1",
      "plan.name": "pro",
      plan_name: "gold",
      appIdentifier: "com.example.shop",
    },
    { deviceType: "android", deviceToken: "t2", "plan.name": "pro", appIdentifier: "my app" },
  ];
  const found = await importFile({ format: "parse", chunks: lines.map((line) => [JSON.stringify(line)]) });
  expect(found).toMatchObject({
    created: 2,
    unused: [{ field: "appIdentifier", reason: "invalid", lines: 1 }],
    renamed: [
      { field: "plan.name", name: "metadata.plan_name", lines: 1 },
      { field: "plan.name", name: "metadata.plan_name_2", lines: 1 },
    ],
  });
  const list = await registry.ask(importRequests.list, { projectId, page: { by: "page", page: 1, perPage: 10 } });
  const { unused: _, renamed: __, ...listed } = found;
  expect(list.data).toEqual([listed]);
});
