import { encodeAfter } from "@herald/mongo";
import { seedDevices } from "../../../services/registry/test/seed-devices.ts";
import type { Sender } from "../herald.ts";
import type { Row } from "../row.ts";
import { percentile } from "../table.ts";

const samples = 100;

const medianMs = async (work: () => Promise<unknown>): Promise<number> => {
  const took: number[] = [];
  for (let index = 0; index < samples; index++) {
    const begin = performance.now();
    await work();
    took.push(performance.now() - begin);
  }
  return percentile(took, 50);
};

const newDevices = function* (count: number) {
  for (let index = 0; index < count; index++)
    yield { token: index.toString(16).padStart(64, "0"), platform: "ios" as const };
};

/** The first page of a project's devices, and one from the middle of the walk, by the number of its devices. */
export const deviceListRow: Row = {
  name: "device-list",
  about: "pages of the device list, by each number of --listed",
  async *measure({ system, runs, listed }) {
    const projects: { of: Sender; middle: string; count: number }[] = [];
    for (const count of listed) {
      const of = await system.anotherProject(`devices-${count}`);
      let seen = 0;
      let middle = "";
      for await (const ids of seedDevices(system.database("registry"), of.project.id, newDevices(count))) {
        if (seen <= count / 2) middle = ids[0] ?? "";
        seen += ids.length;
      }
      projects.push({ of, middle, count });
    }
    const lines: { label: string; values: number[]; digits: number }[] = [];
    for (const [name, path] of [
      ["first page", () => "/devices?per_page=20"],
      ["`after` page", (middle: string) => `/devices?per_page=20&after=${encodeAfter(middle)}`],
    ] as const)
      for (const { of, middle, count } of projects) {
        const values: number[] = [];
        for (let run = 0; run < runs; run++) values.push(await medianMs(() => of.get(path(middle))));
        lines.push({ label: `${name} of ${count}, p50 ms`, values, digits: 1 });
      }
    yield { title: `lists of ${listed.join(" and ")} devices`, lines };
  },
};
