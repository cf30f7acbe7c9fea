import { createHash } from "node:crypto";
import { type Cost, costOf, partLines, sumOf } from "../cost.ts";
import type { Sender, System } from "../herald.ts";
import type { Row } from "../row.ts";
import type { Figure, Line } from "../table.ts";
import { until } from "../until.ts";

/** Some seconds of work at the highest rate. */
const count = 20_000;

/** A file of devices as a backend exports them. Every run has new devices. */
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

type Result = { readonly perSecond: number; readonly cost: Cost };

/** Uploads a file and waits until all its lines are processed. Returns devices a second and the CPU per device. */
const importFile = async (
  system: System,
  { herald: { imports } }: Sender,
  file: string,
  as: "created" | "unchanged",
): Promise<Result> => {
  const { id } = await imports.create({ format: "herald" });
  let seconds = 0;
  const cost = await costOf(system, count, async () => {
    const begin = performance.now();
    await imports.upload(id, () => file);
    const done = await until("the import is completed", async () => {
      const found = await imports.get(id);
      return found.status === "completed" ? found : undefined;
    });
    seconds = (performance.now() - begin) / 1_000;
    if (done[as] !== count) throw new Error(`${count} devices should be ${as}: ${JSON.stringify(done)}`);
  });
  return { perSecond: count / seconds, cost };
};

const linesOf = (results: readonly Result[], figure?: Figure): Line[] => {
  const costs = results.map(({ cost }) => cost);
  return [
    { label: "devices/s", values: results.map(({ perSecond }) => perSecond), ...(figure && { figure }) },
    { label: "CPU of all, µs", values: costs.map((cost) => sumOf(cost)) },
    ...partLines(costs, "µs"),
  ];
};

/** Imports of new devices, and repeated imports of the same file. */
export const importsRow: Row = {
  name: "imports",
  about: "devices imported from a file: new ones, and the same file again",
  async *measure({ system, runs }) {
    const project = await system.anotherProject("imports");
    const created: Result[] = [];
    const unchanged: Result[] = [];
    for (let run = 0; run < runs; run++) {
      const file = fileOf(run);
      created.push(await importFile(system, project, file, "created"));
      unchanged.push(await importFile(system, project, file, "unchanged"));
    }
    const title = `Devices that register: an import of ${count} with a user, a topic and three values each`;
    yield { title, lines: linesOf(created, "imports") };
    yield { title: `${title}, again`, lines: linesOf(unchanged) };
  },
};
