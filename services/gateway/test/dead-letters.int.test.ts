import { type DeadLetter, ProjectDeletedV1, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { sendOf, useDeadLetters } from "./dead-letters-fixture.ts";
import { adminToken, apnsToken } from "./gateway-fixture.ts";
import { writeDeadLetter } from "./write-dead-letter.ts";

const { system, project, handled, work, admin, replay } = useDeadLetters();

const schema = SendV1.schema.extend({ fromTheFuture: z.string() });
const brokenSend = { ...SendV1, schema } as unknown as typeof SendV1;

/** The newest dead letter of a durable with this notification, as soon as there is one. */
const letterOf = (notificationId: string) =>
  eventually(async (): Promise<DeadLetter> => {
    const { body } = await admin("GET ?durable=dispatch-start&per_page=100&page=1");
    const found = body.data.findLast((letter: DeadLetter) => letter.notification_id === notificationId);
    if (found === undefined) throw new Error("it is not there");
    return found;
  });

test("a message that a broken version dead-lettered is listed with its reason and without secrets, and replayed after the repair", async () => {
  await work(brokenSend);
  const token = apnsToken();
  const notification = { title: "planted-title", body: "planted-body", targets: [`token:${token}`, "all"] };
  const sent = await system().call("POST /api/v1/notifications", { token: project().token, body: { notification } });
  expect(sent.status).toBe(202);
  const letter = await letterOf(sent.body.data.id);
  expect(letter).toMatchObject({
    durable: "dispatch-start",
    message: "SendV1",
    project_id: project().id,
    reason: "schema",
    detail: expect.stringContaining("fromTheFuture"),
    deliveries: 1,
  });
  const inspected = await admin(`GET /${letter.id}`);
  expect(inspected).toMatchObject({ status: 200, body: { data: letter } });
  const shown = JSON.stringify([letter, inspected.body, [...inspected.headers]]);
  for (const secret of [token, "planted-title", "planted-body", project().token]) expect(shown).not.toContain(secret);

  await work();
  const replayed = await replay(letter.id);
  expect(replayed).toMatchObject({
    status: 202,
    body: { data: { id: letter.id, status: "replayed", replays: 1, detail: `published again on ${letter.subject}` } },
  });
  expect(JSON.stringify(replayed.body)).not.toContain("planted");
  await eventually(() => expect(handled).toMatchObject([{ notificationId: sent.body.data.id, content: notification }]));
  const { replayed_at } = replayed.body.data;
  expect((await admin(`GET /${letter.id}`)).body.data).toEqual({ ...letter, replays: 1, replayed_at });
});

test("dead letters of one project are listed without page numbers", async () => {
  const other = await system().project();
  const id = await writeDeadLetter(system().bus, "dispatch-start", SendV1, sendOf(other.id));
  await writeDeadLetter(system().bus, "dispatch-start", SendV1, sendOf(project().id));
  const { status, body } = await admin(`GET ?project_id=${other.id}`);
  expect(status).toBe(200);
  expect(body).toMatchObject({ data: [{ id, project_id: other.id }], next: null });
  const refused = await admin(`GET ?project_id=${other.id}&page=1`);
  expect([refused.status, refused.body.errors]).toEqual([
    422,
    ["page: cannot be combined with project_id, whose dead letters are not counted; walk by `after`"],
  ]);
});

test("1,050 dead letters are walked by their links and by key, each once", async () => {
  const durable = "registry-retire-device";
  const ids: string[] = [];
  for (let n = 0; n < 105; n++) {
    const some = Array.from({ length: 10 }, () =>
      writeDeadLetter(system().bus, durable, ProjectDeletedV1, {
        project_id: project().id,
        at: new Date().toISOString(),
      }),
    );
    ids.push(...(await Promise.all(some)));
  }
  ids.sort((one, other) => Number(one) - Number(other));
  const follow = async (first: string) => {
    const seen: string[] = [];
    for (let next: string | undefined = first; next !== undefined; ) {
      const { status, body, headers } = await system().call(`GET ${next}`, { token: adminToken });
      expect(status).toBe(200);
      if (body.pagination) expect(body.pagination).toMatchObject({ count: 1_050, pages: 11, last: 11 });
      seen.push(...body.data.map(({ id }: DeadLetter) => id));
      next = /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    }
    return seen;
  };
  const list = `/admin/v1/dead-letters?durable=${durable}&per_page=100`;
  expect(await follow(list)).toEqual(ids);
  expect(await follow(`${list}&after=`)).toEqual(ids);
});
