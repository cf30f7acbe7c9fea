import { sendGroupOf } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { describe, expect, test } from "vitest";
import type { Answered } from "./gateway-fixture.ts";
import { idOf, newKeys, useKeyedGroups } from "./keyed-groups-fixture.ts";

const { system, project, records, groups, send, travelled, placeOf, unpublish, expectOneIdEach, startAnother } =
  useKeyedGroups();

describe("concurrent sends with keys", () => {
  test("share messages and are published once, and a replay gives each its answer again", async () => {
    const keys = newKeys(100);
    const answers = await Promise.all(keys.map((key) => send(key)));
    expect(answers.filter(({ status }) => status !== 202)).toEqual([]);
    await expectOneIdEach(keys, answers.map(idOf));
    const mine = groups.filter(({ sends }) => sends.some(({ content: { title = "" } }) => keys.includes(title)));
    expect(mine.length).toBeLessThan(keys.length);
    for (const { groupId, sends } of mine)
      for (const one of sends) {
        expect(sendGroupOf(one.notificationId)).toBe(groupId);
        expect(one.origin?.requestId).toBe(
          answers.find((answer) => idOf(answer) === one.notificationId)?.headers.get("x-request-id"),
        );
      }
    const again = await Promise.all(keys.map((key) => send(key)));
    expect(again.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual(keys.map(() => "true"));
    expect(again.map(({ body }) => body)).toEqual(answers.map(({ body }) => body));
    expect(travelled(keys).grouped).toHaveLength(keys.length);
    expect(travelled(keys).alone).toEqual([]);
    expect((await records().get(await placeOf(idOf(answers[50] as Answered))))?.value).not.toHaveProperty("answer");
  });

  test("replay one whose key is taken, and accept the others", async () => {
    const [taken = "", ...others] = newKeys(60);
    const first = await send(taken);
    await expectOneIdEach([taken], [idOf(first)]);
    // As if another gateway had claimed it, because the new gateway does not know it.
    const other = await startAnother();
    const answers = await Promise.all([taken, ...others].map((key) => send(key, other.address())));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
    expect(answers.filter(({ headers }) => headers.has("idempotent-replayed"))).toEqual([answers[0]]);
    expect(answers[0]?.body).toEqual(first.body);
    await expectOneIdEach([taken, ...others], answers.map(idOf));
    expect(travelled([taken]).grouped).toHaveLength(1);
    await other.stop();
  });

  test("to two gateways with the same keys at the same time are published once each", async () => {
    const other = await startAnother();
    const keys = newKeys(80);
    const both = await Promise.all([
      ...keys.map((key) => send(key)),
      ...keys.toReversed().map((key) => send(key, other.address())),
    ]);
    expect(both.filter(({ status }) => status !== 202 && status !== 409)).toEqual([]);
    // A repeat that comes before dispatch knows the send has to wait.
    const ids = await eventually(async () => {
      const answers = await Promise.all(keys.map((key) => send(key)));
      expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 202));
      return answers.map(idOf);
    });
    await expectOneIdEach(keys, ids);
    expect(travelled(keys).grouped).toHaveLength(keys.length);
    expect(travelled(keys).alone).toEqual([]);
    await other.stop();
  });

  test("with another body, or while the first is still running, are refused and their neighbours are not", async () => {
    const [reused = "", running = "", ...others] = newKeys(40);
    const first = await send(reused);
    await unpublish(idOf(await send(running)));
    const answers = await Promise.all([
      system().call("POST /api/v1/notifications", {
        token: project().token,
        body: { notification: { title: "Another", targets: ["token:x"] } },
        headers: { "idempotency-key": reused },
      }),
      ...[running, ...others].map((key) => send(key)),
    ]);
    expect(answers.slice(0, 2).map(({ status }) => status)).toEqual([422, 409]);
    expect(answers.slice(2).map(({ status }) => status)).toEqual(others.map(() => 202));
    expect((await send(reused)).body).toEqual(first.body);
  });
});

test("a key whose time has ended is a new one, at once", async () => {
  const keys = newKeys(3);
  const before = await Promise.all(keys.map((key) => send(key)));
  for (const answer of before) {
    const place = await placeOf(idOf(answer));
    await records().delete(place);
  }
  const after = await Promise.all(keys.map((key) => send(key)));
  expect(after.map(({ status, headers }) => [status, headers.has("idempotent-replayed")])).toEqual(
    keys.map(() => [202, false]),
  );
  expect(new Set([...before, ...after].map(idOf)).size).toBe(6);
  const topic = () =>
    system().call("POST /api/v1/topics", {
      token: project().token,
      body: { topic: { name: `topic-${keys[0]}` } },
      headers: { "idempotency-key": keys[0] ?? "" },
    });
  const made = await topic();
  await records().delete(await placeOf(made.body.data.id));
  // Performed again, and refused because of the first result.
  expect((await topic()).status).toBe(409);
});

test("answers of a gateway that has stopped are found by another", async () => {
  const other = await startAnother();
  const keys = newKeys(30);
  const answers = await Promise.all(keys.map((key) => send(key, other.address())));
  await other.stop();
  await expectOneIdEach(keys, answers.map(idOf));
  const again = await Promise.all(keys.map((key) => send(key)));
  expect(again.map(({ status, headers }) => [status, headers.has("idempotent-replayed")])).toEqual(
    keys.map(() => [202, true]),
  );
  expect(again.map(idOf)).toEqual(answers.map(idOf));
});
