import { idTime } from "@herald/contracts";
import { encodeAfter } from "@herald/mongo";
import { seedDevices } from "../../../services/registry/test/seed-devices.ts";
import type { Sender } from "../herald.ts";
import type { Row } from "../row.ts";
import { samplesOf } from "../samples.ts";
import { percentile } from "../table.ts";

const perPage = 20;

const tokenOf = (index: number) => index.toString(16).padStart(64, "0");

/** One device in ten is an Android device with a topic, and one in fifty has a user. */
const newDevices = function* (count: number) {
  for (let index = 0; index < count; index++)
    yield {
      token: tokenOf(index),
      platform: index % 10 === 0 ? ("android" as const) : ("ios" as const),
      topics: index % 10 === 0 ? ["tenth"] : [],
      ...(index % 50 === 0 && { user: { by: "project" as const, userId: `u_${index % 1_000}` } }),
    };
};

/** `middle`: the id of a device in the middle of the list of `count`. */
const queries: readonly (readonly [name: string, path: (middle: string, count: number) => string])[] = [
  ["first page", () => ""],
  ["page in the middle, by number", (_middle, count) => `&page=${Math.ceil(count / 2 / perPage)}`],
  ["`after` page", (middle) => `&after=${encodeAfter(middle)}`],
  ["newest first", () => "&sort=-created_at"],
  ["newest of a time", (middle) => `&sort=-created_at&created_before=${idTime(middle).toISOString()}&after=`],
  ["of a status", () => "&status=active"],
  ["of a platform, newest first", () => "&platform=android&sort=-created_at"],
  ["of a platform and a status", () => "&platform=android&status=active"],
  ["of a platform and a status that match none", () => "&platform=android&status=inactive"],
  ["of a user", () => "&user_id=u_0"],
  ["of a token", () => `&token=${tokenOf(17)}`],
  ["that match a topic", () => "&match=topic:tenth"],
  [
    "that match a condition",
    () => `&match=${encodeURIComponent("condition:'tenth' in topics && platform == 'android'")}`,
  ],
];

/** Pages of the device list with different orders, filters and targets, for each number of devices. */
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
    for (const [name, path] of queries)
      for (const { of, middle, count } of projects) {
        const took: number[][] = [];
        for (let run = 0; run < runs; run++)
          took.push(await samplesOf(() => of.get(`/devices?per_page=${perPage}${path(middle, count)}`)));
        for (const percent of [50, 99]) {
          const values = took.map((times) => percentile(times, percent));
          lines.push({ label: `${name}: p${percent} ms of ${count}`, values, digits: 1 });
        }
      }
    yield { title: `lists of ${listed.join(" and ")} devices`, lines };
  },
};
