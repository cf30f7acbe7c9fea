import { createHash } from "node:crypto";
import { Herald, HeraldError, type Import } from "@herald/client";
import { eventually } from "@herald/testing";
import type { ServiceName } from "../../harness/system.ts";
import { pacedBody } from "../paced-body.ts";
import type { Row } from "../row.ts";
import { randomMoment } from "../trial.ts";

/** The lines of an import file, always of the same devices. */
const fileOf = (projectId: string, count: number): string[] =>
  Array.from(
    { length: count },
    (_, at) =>
      `${JSON.stringify({
        token: createHash("sha256").update(`${projectId} ${at}`).digest("hex"),
        platform: "ios",
        metadata: { at },
        topics: ["imported"],
      })}\n`,
  );

const kills: readonly ServiceName[] = ["registry", "gateway", "registry", "gateway"];

/** Uploads until all lines are processed, however often the connection breaks. */
const uploadAll = async (
  herald: Herald,
  id: string,
  open: Parameters<Herald["imports"]["upload"]>[1],
): Promise<void> => {
  await eventually(
    async () => {
      try {
        await herald.imports.upload(id, open);
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
  fault: "kill -9 of registry and gateway, twice each, during an import of 200,000 devices (short: 7,500)",
  pass: "the upload continues; exactly those devices; each line counts once",
  run: async ({ long, shared }) => {
    const system = await shared();
    const project = await system.project("Import under faults");
    const herald = new Herald({ url: system.gateway, token: project.token, maxRetries: 10 });
    const ofStage = long ? 40_000 : 1_500;
    const count = ofStage * (kills.length + 1);
    const lines = fileOf(project.id, count);
    const { id } = await herald.imports.create({ format: "herald" });
    let allowed = ofStage;
    const uploading = uploadAll(herald, id, () => pacedBody(lines, () => allowed));
    const problems: string[] = [];
    for (const name of kills) {
      const before = allowed - ofStage;
      await eventually(
        async () => {
          if ((await herald.imports.get(id)).lines_stored <= before) throw new Error("not so far yet");
        },
        { timeoutMs: 300_000 },
      );
      await randomMoment(300);
      await system.services[name].kill();
      await system.services[name].ready();
      allowed += ofStage;
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
    await uploadAll(herald, second, () => lines.join(""));
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
