import { createHash } from "node:crypto";
import type { Sender } from "../herald.ts";
import type { Row } from "../row.ts";
import { until } from "../until.ts";

/** Some seconds of the highest rate. */
const count = 20_000;

/** Devices as a backend exports them, others in every run. */
const fileOf = (run: number): string =>
  Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      token: createHash("sha256").update(`${run} ${at}`).digest("hex"),
      platform: "ios",
      user_id: `u_${at}`,
      metadata: { plan: at % 3 === 0 ? "pro" : "free" },
      identifiers: { app_version: "2.4.1", current_locale: "de-DE" },
      topics: ["news"],
    }),
  ).join("\n");

/** Uploads a file and waits until all its lines are processed. Returns devices a second. */
const importFile = async (
  { herald: { imports } }: Sender,
  file: string,
  as: "created" | "unchanged",
): Promise<number> => {
  const { id } = await imports.create({ format: "herald" });
  const begin = performance.now();
  await imports.upload(id, () => file);
  const done = await until("the import is completed", async () => {
    const found = await imports.get(id);
    return found.status === "completed" ? found : undefined;
  });
  if (done[as] !== count) throw new Error(`${count} devices should be ${as}: ${JSON.stringify(done)}`);
  return (count * 1_000) / (performance.now() - begin);
};

/** Imports of new devices, and of the same file again. */
export const importsRow: Row = {
  name: "imports",
  about: "devices imported from a file: new ones, and the same file again",
  async *measure({ system, runs }) {
    const project = await system.anotherProject("imports");
    const created: number[] = [];
    const unchanged: number[] = [];
    for (let run = 0; run < runs; run++) {
      const file = fileOf(run);
      created.push(await importFile(project, file, "created"));
      unchanged.push(await importFile(project, file, "unchanged"));
    }
    yield {
      title: `imports of ${count} devices with a user, a topic and three values each`,
      lines: [
        { label: "new devices/s", values: created, figure: "imports" },
        { label: "the same again, devices/s", values: unchanged },
      ],
    };
  },
};
