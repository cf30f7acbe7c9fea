import { audienceRequests, type Device, deviceRequests, type ListRequest, type ProjectId } from "@herald/contracts";
import { encodeAfter } from "@herald/mongo";
import { beforeAll, describe, expect, test } from "vitest";
import { failure, patient, patientMs, useRegistry } from "./registry-fixture.ts";
import { type SeedDevice, seedDevices } from "./seed-devices.ts";

const registry = useRegistry();
let projectId: ProjectId;
let ids: string[];

const seeds = Array.from(
  { length: 3_500 },
  (_, at): SeedDevice => ({
    token: `t${at}`,
    platform: at % 5 === 0 ? "android" : "ios",
    topics: at % 2 === 0 ? ["even"] : [],
    metadata: { n: at, long: at % 7 === 0 ? "x".repeat(300) : "short" },
    ...(at % 1_000 === 0 && { user: { by: "project", userId: "u_1" } as const }),
  }),
);

beforeAll(async () => {
  projectId = await registry.project();
  ids = [];
  for await (const some of seedDevices(registry.db, projectId, seeds)) ids.push(...some);
  await registry.db
    .collection<{ _id: string }>("devices")
    .updateMany({ _id: { $in: ids.slice(10, 40) } }, { $set: { status: "inactive" } });
});

type Page = { data: Device[]; next: string | null };
type Options = Partial<ListRequest> & {
  match: string;
  after?: string;
  platform?: "ios";
  user_id?: string;
  token?: string;
};

const page = async ({ match, platform, user_id, token, after = "", perPage = 100, ...range }: Options): Promise<Page> =>
  (await registry.ask(
    deviceRequests.list,
    { projectId, match, platform, user_id, token, page: { ...range, by: "key", after, perPage } },
    patientMs,
  )) as Page;

/** The numbers of the devices, and how many pages the walk had. */
const walk = async (options: Options) => {
  const found: number[] = [];
  let pages = 0;
  for (let after: string | null = ""; after !== null; pages++) {
    const { data, next }: Page = await page({ ...options, after });
    expect(data.length).toBeLessThanOrEqual(options.perPage ?? 100);
    found.push(...data.map(({ token }) => Number(token.slice(1))));
    after = next;
  }
  expect(new Set(found).size).toBe(found.length);
  return { found: found.sort((one, other) => one - other), pages };
};

const isActive = (at: number) => at < 10 || at >= 40;
const numbers = (matches: (at: number) => boolean) =>
  seeds.map((_, at) => at).filter((at) => isActive(at) && matches(at));

describe("a walk meets each device that a send reaches once", () => {
  test.each([
    ["all", () => true],
    ["topic:even", (at) => at % 2 === 0],
    ["metadata:n=7", (at) => at === 7],
    [`metadata:long=${"x".repeat(300)}`, (at) => at % 7 === 0],
    ["user:u_1", (at) => at % 1_000 === 0],
    ["token:t12", () => false],
    ["token:t41", (at) => at === 41],
    ["topic:none", () => false],
    ["condition:'even' in topics && metadata.n >= 3000", (at) => at % 2 === 0 && at >= 3_000],
    ["condition:platform == 'android' && metadata.n < 100", (at) => at % 5 === 0 && at < 100],
    ["condition:metadata.missing == 'x'", () => false],
  ] as [string, (at: number) => boolean][])("%s", async (match, matches) => {
    const { found } = await walk({ match });
    expect(found).toEqual(numbers(matches));
    const { devices } = await registry.ask(audienceRequests.count, { projectId, targets: [match] });
    expect(devices.ios + devices.android + devices.web).toBe(found.length);
  });

  test("a device by its id, active or not", async () => {
    expect((await walk({ match: `device:${ids[5]}` })).found).toEqual([5]);
    expect((await walk({ match: ids[12] ?? "" })).found).toEqual([]);
  });

  test("by pages of any size", patient, async () => {
    const wanted = numbers((at) => at % 2 === 0);
    expect(await walk({ match: "topic:even", perPage: 45 })).toMatchObject({ found: wanted });
    expect((await walk({ match: "user:u_1", perPage: 1 })).found).toEqual(numbers((at) => at % 1_000 === 0));
    const { pages } = await walk({ match: "topic:even", perPage: 100 });
    expect(pages).toBe(Math.ceil(wanted.length / 100));
  });

  test("other filters narrow it", async () => {
    expect((await walk({ match: "topic:even", platform: "ios" })).found).toEqual(
      numbers((at) => at % 2 === 0 && at % 5 !== 0),
    );
    expect((await walk({ match: "topic:even", user_id: "u_1" })).found).toEqual(numbers((at) => at % 1_000 === 0));
    expect((await walk({ match: "topic:even", token: "t44" })).found).toEqual([44]);
    expect((await walk({ match: "all", createdBefore: "2020-01-01T00:00:00Z" })).found).toEqual([]);
    expect((await walk({ match: "all", createdAfter: "2020-01-01T00:00:00Z" })).found).toEqual(numbers(() => true));
  });
});

test("a subscription and a device that comes meanwhile disturb no walk", async () => {
  const first = await page({ match: "topic:even", perPage: 50 });
  const seen = new Set(first.data.map(({ id }) => id));
  for await (const _ of seedDevices(registry.db, projectId, [{ token: "late", platform: "ios", topics: ["late"] }]));
  let { next } = first;
  while (next !== null) {
    const more = await page({ match: "topic:even", after: next, perPage: 50 });
    for (const { id } of more.data) {
      expect(seen).not.toContain(id);
      seen.add(id);
    }
    next = more.next;
  }
  expect(seen.size).toBe(numbers((at) => at % 2 === 0).length);
});

test(
  "a condition that no index narrows reads a bounded number of rows a page, and its walk ends",
  patient,
  async () => {
    const many = await registry.project();
    const few = projectId;
    const rows = Array.from({ length: 21_000 }, (_, at) => ({ token: `m${at}`, platform: "ios" as const }));
    for await (const _ of seedDevices(registry.db, many, rows));
    projectId = many;
    const { found, pages } = await walk({ match: "condition:metadata.missing > 1" });
    projectId = few;
    expect({ found, pages }).toEqual({ found: [], pages: 2 });
  },
);

test.each(["x", encodeAfter("dev_06bq4ghm31tz5d2ns8y7k9w0ac"), encodeAfter("0/0/"), encodeAfter("9999/1/")])(
  "%s is no position of a walk",
  async (after) => {
    expect(await failure(page({ match: "all", after }))).toMatchObject({ code: "validation-failed" });
  },
);
