import { createHash } from "node:crypto";
import { Herald, HeraldError, type Import } from "@herald/client";
import { eventually } from "@herald/testing";
import type { ServiceName } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { randomMoment } from "../trial.ts";

/** The lines of an import file, always of the same devices. */
const fileOf = (projectId: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      token: createHash("sha256").update(`${projectId} ${at}`).digest("hex"),
      platform: "ios",
      metadata: { at },
      topics: ["imported"],
    }),
  );

const kills: readonly ServiceName[] = ["registry", "gateway", "registry", "gateway"];

/** Uploads until all lines are processed, however often the connection breaks. */
const uploadAll = async (herald: Herald, id: string, file: string): Promise<void> => {
  await eventually(
    async () => {
      try {
        await herald.imports.upload(id, () => file);
      } catch (error) {
        if (!(error instanceof HeraldError)) throw error;
        throw new Error(`the upload broke: ${error.slug}`);
      }
    },
    { timeoutMs: 900_000 },
  );
};

const completed = (herald: Herald, id: string): Promise<Import> =>
  eventually(
    async () => {
      const found = await herald.imports.get(id);
      if (found.status !== "completed") throw new Error(`${found.lines_processed} lines are processed`);
      return found;
    },
    { timeoutMs: 300_000 },
  );

export const killedImport: Row = {
  name: "import",
  fault: "kill -9 of registry and gateway in the middle of an import of 200,000 devices (short: 20,000), twice each",
  pass: "the upload continues and ends with exactly those devices; each line counts once",
  run: async ({ long, shared }) => {
    const system = await shared();
    const project = await system.project("Import under faults");
    const herald = new Herald({ url: system.gateway, token: project.token, maxRetries: 10 });
    const count = long ? 200_000 : 20_000;
    const lines = fileOf(project.id, count);
    const { id } = await herald.imports.create({ format: "herald" });
    const uploading = uploadAll(herald, id, lines.join("\n"));
    const problems: string[] = [];
    for (const [index, name] of kills.entries()) {
      const from = (count * (index + 1)) / (kills.length + 2);
      await eventually(
        async () => {
          if ((await herald.imports.get(id)).lines_stored < from) throw new Error("not so far yet");
        },
        { timeoutMs: 300_000 },
      );
      await randomMoment(500);
      await system.services[name].kill();
      await system.services[name].ready();
    }
    await uploading;
    const report = await completed(herald, id);
    const { created, updated, unchanged, refused } = report;
    const devices = system.registryDatabase.client.db(system.registryDatabase.name).collection("devices");
    const stored = await devices.countDocuments({ projectId: project.id });
    if (stored !== count) problems.push(`${stored} devices are stored instead of ${count}`);
    if (created !== count || updated + unchanged + refused > 0)
      problems.push(`${count} lines count as ${JSON.stringify({ created, updated, unchanged, refused })}`);
    const { id: second } = await herald.imports.create({ format: "herald", dry_run: true });
    await uploadAll(herald, second, lines.join("\n"));
    const again = await completed(herald, second);
    if (again.unchanged !== count) problems.push(`a dry run finds ${again.unchanged} of ${count} unchanged`);
    return {
      sent: 0,
      final: 0,
      lost: 0,
      repeated: { marked: 0, unmarked: 0 },
      recoveryMs: undefined,
      problems,
      notes: [`${created} devices were created by ${kills.length} kills, none twice`],
    };
  },
};
