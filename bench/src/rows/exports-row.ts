import { seedDevices } from "../../../services/registry/test/seed-devices.ts";
import { costOf, sumOf } from "../cost.ts";
import type { Row } from "../row.ts";
import type { Line } from "../table.ts";

/** Devices of the exported project. */
const rows = 50_000;

const newDevices = function* (count: number) {
  for (let index = 0; index < count; index++)
    yield {
      token: index.toString(16).padStart(64, "0"),
      platform: "ios" as const,
      topics: ["news"],
      metadata: { plan: "pro", visits: index },
      identifiers: { current_locale: "de-DE", app_version: "2.4.1" },
    };
};

/** All devices of a project, as a client reads them: NDJSON and CSV, plain and compressed. */
export const exportsRow: Row = {
  name: "exports",
  about: "exports of devices, in rows a second",
  async *measure({ system, runs }) {
    const { project } = await system.anotherProject("exports");
    for await (const _ of seedDevices(system.database("registry"), project.id, newDevices(rows)));
    const token = await system.tokenOf(project, "export");
    const lines: Line[] = [];
    for (const [label, format, coding] of [
      ["NDJSON", "ndjson", "identity"],
      ["NDJSON, gzip", "ndjson", "gzip"],
      ["CSV", "csv", "identity"],
    ] as const) {
      const values: number[] = [];
      const costs: number[] = [];
      for (let run = 0; run < runs; run++) {
        let seconds = 0;
        const cost = await costOf(system, rows, async () => {
          const begin = performance.now();
          // Plain fetch, because the client cannot choose the coding and parses each row.
          const response = await fetch(`${system.gateway}/api/v1/exports/devices?format=${format}`, {
            headers: { authorization: `Bearer ${token}`, "accept-encoding": coding },
          });
          const text = await response.text();
          seconds = (performance.now() - begin) / 1_000;
          const found = text.split("\n").length - (format === "csv" ? 2 : 1);
          if (found !== rows) throw new Error(`the export had ${found} rows, and not ${rows}`);
        });
        values.push(rows / seconds);
        costs.push(sumOf(cost));
      }
      lines.push({
        ...{ label: `${label}: rows/s`, values, digits: 0 },
        ...(label === "NDJSON" && { figure: "exports" as const }),
      });
      lines.push({ label: `${label}: CPU of all, µs`, values: costs });
    }
    yield { title: `exports of ${rows} devices`, lines };
  },
};
