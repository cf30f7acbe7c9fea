import { eventually } from "@herald/testing";
import { expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import { devices } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";

/** Three of one project's sends are delivered at a time, and the others of their group wait in memory. */
const smallSends = { total: 4, waitingBytes: 1_048_576 };
const { dispatch, acceptAll, sendsOf, pushesTo } = useSendGroups({}, { smallSends });

test("a stop ends the sends of a group that are being pushed, and the next start sends the others, each once", async () => {
  const projectId = await dispatch().project();
  dispatch().simulators.script([{ provider: "apns", status: 200, delayMs: 3_000 }]);
  const some = devices(10);
  const ids = await acceptAll(sendsOf(projectId, some));
  await eventually(async () =>
    expect((await Promise.all(ids.map(dispatch().rows))).flat().length).toBeGreaterThanOrEqual(3),
  );
  expect(await dispatch().app.stop()).toBe(true);
  const states = (await Promise.all(ids.map(dispatch().rows))).map(([row]) => row?.state);
  const begun = states.filter((state) => state !== undefined);
  expect(new Set(begun)).toEqual(new Set(["final"]));
  expect(begun.length).toBeLessThan(10);

  dispatch().simulators.script([]);
  const next = createApp(dispatch().config, { smallSends });
  await next.start();
  for (const id of ids) {
    expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
    expect(await dispatch().deliveries(projectId, id)).toMatchObject([{ possible_repeat: false }]);
  }
  expect(pushesTo(some)).toEqual(some.map(() => 1));
  expect(await next.stop()).toBe(true);
});
