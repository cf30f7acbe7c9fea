import { closeBus, connectBus, type DeadLetterList, getDeadLetter, listDeadLetters } from "@herald/bus";
import { type DeadLetter, DeadLetter as DeadLetterSchema, type DurableName, SendV1 } from "@herald/contracts";
import { eventually, faultyProxy } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { brokenSend, idsOf, writeLetter, writeLetters } from "./dead-letter-fixture.ts";
import { type BusTest, messagesIn, readStream, sendOf, startBusTest } from "./fixture.ts";
import { onSend } from "./send-fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const numbered = async (page: number, perPage: number, durable?: DurableName) => {
  const request: DeadLetterList = { by: "page", page, perPage, durable };
  const answer = await listDeadLetters(t.bus, request);
  if (!("pagination" in answer)) throw new Error("pages were asked for by number");
  return answer;
};

/** Walks through all pages and returns their dead letters. */
const walk = async (perPage: number, durable?: DurableName): Promise<DeadLetter[]> => {
  const seen: DeadLetter[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const answer = await listDeadLetters(t.bus, { by: "key", after, perPage, durable });
    if (!("next" in answer)) throw new Error("a walk was asked for");
    expect(answer.data.length).toBeLessThanOrEqual(perPage);
    if (answer.next !== null) expect(answer.data).toHaveLength(perPage);
    seen.push(...answer.data);
    after = answer.next;
  }
  return seen;
};

describe("a dead letter", () => {
  test("is shown with its reason and its ids, without its content", async () => {
    await t.handle(onSend(async () => {}, brokenSend));
    const data = sendOf();
    const token = "planted-push-token";
    const body = { ...data, content: { ...data.content, title: "planted-title", targets: [`token:${token}`] } };
    const subject = SendV1.subject(data);
    await jetstream(t.raw.nc).publish(subject, JSON.stringify(body), { msgID: `SendV1/${data.notificationId}` });
    await expect.poll(() => messagesIn(t, "PUSH_DLQ")).toBe(1);
    const {
      data: [letter],
    } = await numbered(1, 20);
    expect(letter).toEqual({
      id: expect.stringMatching(/^\d+$/),
      durable: "dispatch-start",
      message: "SendV1",
      project_id: data.projectId,
      notification_id: data.notificationId,
      subject,
      reason: "schema",
      detail: expect.stringContaining("fromTheFuture"),
      deliveries: 1,
      died_at: expect.any(String),
    });
    expect(DeadLetterSchema.parse(letter)).toEqual(letter);
    expect(await getDeadLetter(t.bus, letter?.id ?? "")).toEqual(letter);
    const [stored] = await readStream(t, "PUSH_DLQ");
    expect(stored?.string()).toContain(token);
    for (const secret of [token, "planted-title"]) expect(JSON.stringify(letter)).not.toContain(secret);
  });

  test("of a batch names its notification by the id that the batch was published with", async () => {
    const { projectId, notificationId } = sendOf();
    const id = await writeLetter(t, "dispatch-direct-ios", {
      "Herald-Dead-Subject": `push.deliver.v1.direct.ios.${projectId}`,
      "Herald-Original-Nats-Msg-Id": `DeliverBatchV1/${notificationId}/0/1`,
    });
    expect(await getDeadLetter(t.bus, id)).toMatchObject({
      message: "DeliverBatchV1",
      project_id: projectId,
      notification_id: notificationId,
    });
  });

  test("with arbitrary headers is shown in the same shape", async () => {
    const facts = {
      "Herald-Dead-Subject": "push.cmd.v1.dispatch.send.x.y",
      "Herald-Dead-Deliveries": "-7.5e400",
      "Herald-Dead-At": "yesterday",
      "Herald-Replay-Of": "../etc",
    };
    const ids = [await writeLetter(t, "dispatch-start", facts, "\xff"), await writeLetter(t, "stranger", {}, "")];
    const { data } = await numbered(1, 20);
    expect(idsOf(data)).toEqual(ids);
    for (const letter of data) expect(DeadLetterSchema.parse(letter)).toEqual(letter);
    expect(data[0]).toMatchObject({ message: "SendV1", deliveries: 0 });
    expect(data[0]).not.toHaveProperty("project_id");
    expect(data[1]).toMatchObject({ durable: "stranger", subject: "", reason: "" });
  });

  test.each(["", "0", "-1", "1.5", "1e3", " 1", "x", "9".repeat(15), "9".repeat(30)])(
    "does not exist as %j",
    async (id) => {
      await writeLetter(t, "dispatch-start", {});
      await expect(getDeadLetter(t.bus, id)).rejects.toMatchObject({ code: "dead-letter-not-found" });
    },
  );

  test("that was removed is not found, although a later one exists", async () => {
    const gone = await writeLetter(t, "dispatch-start", {});
    await writeLetter(t, "dispatch-start", {});
    await t.raw.jsm.streams.deleteMessage("PUSH_DLQ", Number(gone));
    await expect(getDeadLetter(t.bus, gone)).rejects.toMatchObject({ code: "dead-letter-not-found" });
  });
});

describe("pages", () => {
  test("of an empty stream are one empty page", async () => {
    const empty = { count: 0, page: 1, pages: 1, from: 0, to: 0, last: 1 };
    expect(await numbered(1, 20)).toEqual({ data: [], pagination: empty });
    await writeLetter(t, "dispatch-start", {});
    expect(await numbered(1, 20, "registry-expand")).toEqual({ data: [], pagination: empty });
    expect(await walk(20, "registry-expand")).toEqual([]);
  });

  test("of 1,500 with holes show each once, by number and by key, with and without a durable", async () => {
    // Unevenly mixed: the rare durable is rare in the beginning and dense at the end.
    const durables = Array.from({ length: 1_500 }, (_, n) =>
      n % 97 === 0 || n > 1_450 ? "registry-expand" : "dispatch-start",
    );
    await writeLetters(t, durables);
    const { state } = await t.raw.jsm.streams.info("PUSH_DLQ");
    for (const offset of [0, 1, 500, 501, 502, 1_470])
      await t.raw.jsm.streams.deleteMessage("PUSH_DLQ", state.first_seq + offset);
    const stored = await readStream(t, "PUSH_DLQ");
    expect(stored).toHaveLength(1_494);

    for (const durable of [undefined, "registry-expand", "dispatch-start"] as const) {
      const all = stored
        .filter(({ subject }) => durable === undefined || subject === `push.dlq.v1.${durable}`)
        .map(({ seq }) => String(seq));
      expect(idsOf(await walk(100, durable))).toEqual(all);
      const pages = Math.ceil(all.length / 100);
      const seen: string[] = [];
      for (let page = 1; page <= pages; page++) {
        const { data, pagination } = await numbered(page, 100, durable);
        seen.push(...idsOf(data));
        const to = Math.min(page * 100, all.length);
        expect(pagination).toEqual({ count: all.length, page, pages, last: pages, from: page * 100 - 99, to });
      }
      expect(seen).toEqual(all);
      // Pages of one row reveal a search that is off by one.
      for (const position of [1, 2, 3, Math.floor(all.length / 2), all.length - 1, all.length])
        expect(idsOf((await numbered(position, 1, durable)).data)).toEqual([all[position - 1]]);
      expect(await numbered(pages + 1, 100, durable)).toMatchObject({
        data: [],
        pagination: { count: all.length, page: pages + 1, from: 0, to: 0 },
      });
    }
  });

  test("of a project contain only its dead letters, and read a bounded number at a time", async () => {
    const [own, other] = [sendOf(), sendOf()];
    const write = ({ projectId, notificationId }: typeof own) =>
      writeLetter(t, "dispatch-start", {
        "Herald-Dead-Subject": `push.cmd.v1.dispatch.send.${projectId}.${notificationId}`,
      });
    const first = [await write(own), await write(own)];
    await write(other);
    await writeLetters(t, Array(600).fill("dispatch-start"));
    const last = await write(own);
    const ask = async (after: string, perPage: number) => {
      const answer = await listDeadLetters(t.bus, { by: "key", after, perPage, projectId: own.projectId });
      if (!("next" in answer)) throw new Error("a walk was asked for");
      return answer;
    };
    const cut = await ask("", 1);
    expect([idsOf(cut.data), cut.next]).toEqual([[first[0]], first[0]]);
    const short = await ask(cut.next ?? "", 20);
    expect(idsOf(short.data)).toEqual([first[1]]);
    expect(Number(short.next)).toBeGreaterThan(Number(first[1]) + 400);
    const end = await ask(short.next ?? "", 20);
    expect([idsOf(end.data), end.next]).toEqual([[last], null]);
  });

  test("of large bodies are complete, although each read is limited in bytes", async () => {
    await writeLetters(t, Array(6).fill("dispatch-start"), "x".repeat(900_000));
    const { data, pagination } = await numbered(1, 5);
    expect(data).toHaveLength(5);
    expect(pagination).toMatchObject({ count: 6, pages: 2 });
    // The second page has one.
    expect(await walk(5)).toHaveLength(6);
  });

  test.each(["0", "x", "-1", "1 ", "1e3"])("do not begin after %j", async (after) => {
    await expect(listDeadLetters(t.bus, { by: "key", after, perPage: 20 })).rejects.toMatchObject({
      code: "validation-failed",
    });
  });
});

test("fail soon while the broker is unavailable", async () => {
  const id = await writeLetter(t, "dispatch-start", {});
  const proxy = await faultyProxy(t.broker.url);
  const bus = await connectBus({ url: proxy.url, name: "cut-off", log: t.log });
  const unavailable = { code: "bus-unavailable" };
  try {
    expect((await getDeadLetter(bus, id)).id).toBe(id);
    await t.broker.freeze();
    // The broker may still answer the first requests.
    await eventually(() =>
      Promise.all([
        expect(getDeadLetter(bus, id)).rejects.toMatchObject(unavailable),
        expect(listDeadLetters(bus, { by: "key", after: "", perPage: 20 })).rejects.toMatchObject(unavailable),
      ]),
    );
    await t.broker.thaw();
    await proxy.cut();
    const cutOff = await Promise.allSettled([
      getDeadLetter(bus, id),
      listDeadLetters(bus, { by: "page", page: 1, perPage: 20 }),
      listDeadLetters(bus, { by: "key", after: "", perPage: 20 }),
    ]);
    for (const one of cutOff) expect(one).toMatchObject({ status: "rejected", reason: unavailable });
    await proxy.heal();
    await expect.poll(() => getDeadLetter(bus, id).then((letter) => letter.id, String)).toBe(id);
  } finally {
    await t.broker.thaw();
    await closeBus(bus);
    await proxy.stop();
  }
});
