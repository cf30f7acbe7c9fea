import { type DeviceFilter, deviceRequests, type ListRequest, type ProjectId } from "@herald/contracts";
import { beforeAll, describe, expect, test } from "vitest";
import { useRegistry } from "./registry-fixture.ts";
import { seedDevices } from "./seed-devices.ts";

const registry = useRegistry();
let projectId: ProjectId;

test("many devices are listed by pages, counts, statuses and walks", async () => {
  projectId = await registry.project();
  const tokens = Array.from({ length: 1_050 }, (_, at) => ({ token: `t${at}`, platform: "android" as const }));
  for await (const _ of seedDevices(registry.db, projectId, tokens));
  const inactive = await registry.db
    .collection("devices")
    .find({ projectId }, { sort: { _id: 1 }, limit: 7 })
    .toArray();
  await registry.db
    .collection("devices")
    .updateMany({ projectId, _id: { $in: inactive.map(({ _id }) => _id) } }, { $set: { status: "inactive" } });

  const page = (page: number, status?: "active" | "inactive") =>
    registry.ask(deviceRequests.list, { projectId, status, page: { by: "page", page, perPage: 100 } });
  expect(await page(1)).toMatchObject({ pagination: { count: 1_050, pages: 11, from: 1, to: 100 } });
  expect(await page(11)).toMatchObject({ pagination: { from: 1_001, to: 1_050 } });
  expect(await page(12)).toMatchObject({ data: [], pagination: { from: 0, to: 0 } });
  expect(await page(1, "inactive")).toMatchObject({ pagination: { count: 7 } });
  expect(await page(1, "active")).toMatchObject({ pagination: { count: 1_043 } });

  const seen: string[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const walked: { data: { id: string }[]; next?: string | null } = await registry.ask(deviceRequests.list, {
      projectId,
      page: { by: "key", after, perPage: 100 },
    });
    seen.push(...walked.data.map(({ id }) => id));
    after = walked.next ?? null;
  }
  expect(seen).toHaveLength(1_050);
  expect(seen).toEqual([...new Set(seen)].sort());
});

describe("devices of two platforms, users and statuses", () => {
  const begin = Date.parse("2030-01-01T00:00:00.000Z");
  /** The n-th device registers in second n. */
  const at = (second: number) => new Date(begin + second * 1_000).toISOString();
  let tokens: string[];

  beforeAll(async () => {
    projectId = await registry.project();
    tokens = Array.from({ length: 12 }, (_, index) => `many-${index}`);
    let second = 0;
    const seeds = tokens.map((token, index) => ({
      token,
      platform: index % 3 === 0 ? ("android" as const) : ("ios" as const),
      ...(index % 4 === 0 && { user: { by: "project" as const, userId: "u_1" } }),
    }));
    for await (const _ of seedDevices(registry.db, projectId, seeds, () => new Date(at(second++))));
    await registry.db
      .collection("devices")
      .updateMany({ projectId, token: { $in: ["many-0", "many-1"] } }, { $set: { status: "inactive" } });
  });

  const list = async (filter: DeviceFilter, request: Partial<ListRequest> = {}) => {
    const { data } = await registry.ask(deviceRequests.list, {
      projectId,
      ...filter,
      page: { by: "page", page: 1, perPage: 100, ...request } as ListRequest,
    });
    return data.map(({ token }) => Number(token.slice("many-".length)));
  };

  test.each([
    [{ platform: "android" }, [0, 3, 6, 9]],
    [{ user_id: "u_1" }, [0, 4, 8]],
    [{ user_id: "u_1", platform: "ios" }, [4, 8]],
    [{ status: "inactive", platform: "ios" }, [1]],
    [{ status: "active", user_id: "u_1" }, [4, 8]],
    [{ token: "many-5" }, [5]],
    [{ token: "many-5", platform: "android" }, []],
    [{ token: "many-0", platform: "android", user_id: "u_1", status: "inactive" }, [0]],
    [{ token: "none" }, []],
    [{ user_id: "u_2" }, []],
  ] as [DeviceFilter, number[]][])("%o", async (filter, wanted) => {
    expect(await list(filter)).toEqual(wanted);
    expect(await list(filter, { newestFirst: true })).toEqual(wanted.toReversed());
  });

  test("a time range includes its beginning and not its end", async () => {
    const range = { createdAfter: at(2), createdBefore: at(9) };
    expect(await list({}, range)).toEqual([2, 3, 4, 5, 6, 7, 8]);
    expect(await list({ platform: "android" }, range)).toEqual([3, 6]);
    expect(await list({ user_id: "u_1" }, { ...range, newestFirst: true })).toEqual([8, 4]);
    expect(await list({}, { createdBefore: "1960-01-01T00:00:00Z" })).toEqual([]);
    expect(await list({}, { createdAfter: "1960-01-01T00:00:00Z" })).toHaveLength(12);
  });

  test("a walk of the newest meets every device once", async () => {
    const walked: number[] = [];
    for (let after: string | null = ""; after !== null; ) {
      const page = { by: "key", after, perPage: 2, newestFirst: true } as const;
      const found: { data: { token: string }[]; next?: string | null } = await registry.ask(deviceRequests.list, {
        projectId,
        platform: "ios",
        page,
      });
      walked.push(...found.data.map(({ token }) => Number(token.slice("many-".length))));
      after = found.next ?? null;
    }
    expect(walked).toEqual([11, 10, 8, 7, 5, 4, 2, 1]);
  });
});
