import { eventually, operateBroker } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { idOf, newKeys, useKeyedGroups } from "./keyed-groups-fixture.ts";

const { system, records, watchStored, send, travelled, unpublish, healed, expectOneIdEach, startAnother } =
  useKeyedGroups();

describe("after a crash", () => {
  test("before the keys are written, a repeat is a first try", async () => {
    await system().proxy.cut();
    const keys = newKeys(30);
    const answers = await Promise.all(keys.map((key) => send(key)));
    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 503));
    await system().proxy.heal();
    await system().ready();
    const again = await Promise.all(keys.map((key) => send(key)));
    expect(again.map(({ status }) => status)).toEqual(keys.map(() => 202));
    await expectOneIdEach(keys, again.map(idOf));
    expect(travelled(keys).alone).toEqual([]);
  });

  test("between the keys and the message, a repeat ten seconds later sends under the recorded id, alone", async () => {
    const keys = newKeys(30);
    const firsts = await Promise.all(keys.map((key) => send(key)));
    await expectOneIdEach(keys, firsts.map(idOf));
    const noted = await Promise.all(firsts.map((first) => unpublish(idOf(first))));
    expect((await Promise.all(keys.map((key) => send(key)))).map(({ status }) => status)).toEqual(keys.map(() => 409));
    const ids = await healed(keys);
    expect(ids).toEqual(noted);
    await eventually(() => expect(travelled(keys).alone).toHaveLength(keys.length));
    expect(new Set(travelled(keys).alone.map(([, id]) => id))).toEqual(new Set(noted));
  });

  test("after the message, a repeat at another gateway gets the same answer at once, and publishes nothing", async () => {
    const keys = newKeys(30);
    const firsts = await Promise.all(keys.map((key) => send(key)));
    await expectOneIdEach(keys, firsts.map(idOf));
    const other = await startAnother();
    const again = await Promise.all(keys.map((key) => send(key, other.address())));
    expect(again.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual(keys.map(() => "true"));
    expect(again.map(({ body }) => body)).toEqual(firsts.map(({ body }) => body));
    expect(travelled(keys)).toMatchObject({ grouped: { length: keys.length }, alone: [] });
    await other.stop();
  });

  test("after the message, with dispatch unavailable, the first gateway repeats its answer, and others publish the same id again", async () => {
    const [key = ""] = newKeys(1);
    const first = await send(key);
    await expectOneIdEach([key], [idOf(first)]);
    const other = await startAnother();
    system().peers.away("dispatch");
    try {
      expect((await send(key)).body).toEqual(first.body);
      expect((await send(key, other.address())).status).toBe(409);
      const [id] = await healed([key], other.address());
      expect(id).toBe(idOf(first));
      await eventually(() => expect(travelled([key]).alone).toEqual([[key, id]]));
    } finally {
      system().peers.back();
      await other.stop();
    }
  });
});

describe("with the broker unavailable", () => {
  test.each(["key", "group"] as const)(
    "right after a %s was stored: nothing is lost, and each has one id",
    async (what) => {
      const keys: string[] = [];
      let cut: Promise<void> | undefined;
      const onStored = (stored: "key" | "group") => {
        if (stored === what) cut ??= system().proxy.cut();
      };
      watchStored(onStored);
      const watching = records().watch(({ value }) => {
        if (value !== undefined && watching.ready()) onStored("key");
      });
      await eventually(() => expect(watching.ready()).toBe(true));
      const answers: Awaited<ReturnType<typeof send>>[] = [];
      // Usually the first fifty meet the cut.
      while (!answers.some(({ status }) => status === 503)) {
        const more = newKeys(50);
        keys.push(...more);
        answers.push(...(await Promise.all(more.map((key) => send(key)))));
      }
      await watching.stop();
      await cut;
      expect(answers.filter(({ status }) => status !== 503 && status !== 202)).toEqual([]);
      await system().proxy.heal();
      await system().ready();
      // At the gateway that failed them, a repeat need not wait ten seconds: nothing of theirs runs any more.
      const again = await Promise.all(keys.map((key) => send(key)));
      expect(again.filter(({ status }) => status !== 202).map(({ problem }) => problem)).toEqual([]);
      const ids = again.map(idOf);
      for (const [at, answer] of answers.entries()) if (answer.status === 202) expect(idOf(answer)).toBe(ids[at]);
      await expectOneIdEach(keys, ids);
    },
  );

  test("a message that the stream refuses releases the keys: a repeat need not wait", async () => {
    const hands = await operateBroker(system().broker);
    const before = await hands.limit("PUSH_SEND", 1);
    const keys = newKeys(30);
    const answers = await Promise.all(keys.map((key) => send(key)));
    expect(answers.map(({ problem }) => problem.type)).toEqual(keys.map(() => "/docs/errors#queue-full"));
    await hands.limit("PUSH_SEND", before);
    await hands.close();
    const again = await Promise.all(keys.map((key) => send(key)));
    expect(again.map(({ status }) => status)).toEqual(keys.map(() => 202));
    await expectOneIdEach(keys, again.map(idOf));
  });
});
