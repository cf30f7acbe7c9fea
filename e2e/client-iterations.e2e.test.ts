import { Herald, HeraldAdmin, HeraldError } from "@herald/client";
import { eventually } from "@herald/testing";
import { expect } from "vitest";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let admin: HeraldAdmin;
test.beforeAll(({ system: shared }) => {
  system = shared;
  admin = new HeraldAdmin({ url: system.gateway, token: system.adminToken });
});
logOnFailure(() => system);

/** A project, and a client whose token can be revoked. */
const newWorld = async () => {
  const project = await system.project();
  const { projectToken, token = "" } = await admin.tokens.create(project.id, { name: "walker" });
  const herald = new Herald({ url: system.gateway, token });
  const revoke = () => admin.tokens.revoke(project.id, projectToken.id);
  return { project, herald, revoke };
};

/** The error that an iteration ends with. */
const endOf = async (rows: AsyncIterable<unknown>, onRow: () => unknown = () => {}): Promise<HeraldError> => {
  try {
    for await (const _ of rows) await onRow();
  } catch (error) {
    expect(error).toBeInstanceOf(HeraldError);
    return error as HeraldError;
  }
  throw new Error("the iteration came to its end");
};

test("a list that changes while it is walked has every row that stays, once", async () => {
  const { project, herald } = await newWorld();
  const ids: string[] = [];
  for (let index = 0; index < 7; index++) ids.push((await project.register()).device.id);
  const [first = "", , third = "", , fifth = ""] = ids;
  const walked: string[] = [];
  for await (const { id } of herald.devices.list({ perPage: 2 })) {
    walked.push(id);
    if (walked.length !== 2) continue;
    // Delete a device that was read, the next one and one of a later page, and add a new one.
    for (const gone of [first, third, fifth]) await herald.devices.delete(gone);
    ids.push((await project.register()).device.id);
  }
  expect(walked).toEqual(ids.filter((id) => id !== third && id !== fifth));
});

test("a token that is revoked ends every iteration with 401, after the rows that were read", async () => {
  const { project, herald, revoke } = await newWorld();
  for (let index = 0; index < 6; index++) await project.register();
  const following = endOf(herald.events.follow({ since: new Date(Date.now() - 60_000) }));
  let rows = 0;
  const listed = await endOf(herald.devices.list({ perPage: 1 }), async () => {
    if (++rows === 2) await revoke();
    // The gateway refuses the token within a second.
    if (rows >= 2) await eventually(() => expect(herald.stats()).rejects.toMatchObject({ status: 401 }));
  });
  expect([listed.status, listed.slug, rows]).toEqual([401, "unauthenticated", 2]);
  expect(await following).toMatchObject({ status: 401, slug: "unauthenticated" });
});
