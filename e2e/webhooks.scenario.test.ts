import { Herald } from "@herald/client";
import { headerNames } from "@herald/contracts";
import { eventually, expectStatus, readPublished } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Project } from "./harness/project.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";
import { type Mood, startWebhookReceiver, type WebhookReceiver } from "./harness/webhook-receiver.ts";

let system: System;
let receiver: WebhookReceiver;
/** The number of requests per path that hang until the service gives up. */
const hanging = 2;

/** On each path: of five messages, one gets a 500 at its first attempt, and another gets no answer until `hanging` requests hung. */
const moody = (): Mood => {
  const paths = new Map<string, { posted: number; hung: number }>();
  return ({ event, path, before }) => {
    if (event.type === "io.herald.webhook.ping.v1" || before > 0) return 204;
    const { posted, hung } = paths.get(path) ?? { posted: 0, hung: 0 };
    const hangs = posted % 5 === 2 && hung < hanging;
    paths.set(path, { posted: posted + 1, hung: hung + Number(hangs) });
    if (hangs) return "hang";
    return posted % 5 === 0 ? 500 : 204;
  };
};
beforeAll(async () => {
  receiver = await startWebhookReceiver(moody());
  system = await startSystem();
});
afterAll(async () => {
  await system?.stop();
  await receiver?.stop();
});
logOnFailure(() => system);

/** Each project has its own path, so a retried test finds only its own requests. */
const pathOf = ({ id }: Project): string => `/${id}`;
const receivedOf = (project: Project) => receiver.on(pathOf(project));
const idsOf = (received: ReturnType<typeof receivedOf>) => new Set(received.map(({ event }) => event.id));

const createWebhook = async (project: Project): Promise<string> => {
  const path = pathOf(project);
  const body = { webhook: { url: receiver.urlOf(path) } };
  const { data, secret } = expectStatus(await project.call("POST /webhooks", { body }), 201).body;
  receiver.expectSecret(path, secret);
  return data.id;
};

/** The ids of all events of a project on the bus. */
const published = async ({ id }: Project): Promise<Set<string>> => {
  const messages = await readPublished(system.broker, `push.evt.v1.${id}.>`);
  return new Set(messages.map(({ headers }) => headers[headerNames.ceId] ?? ""));
};

/** The ids of the first `count` events of the HTTP stream. */
const streamed = async (project: Project, since: Date, count: number): Promise<Set<string>> => {
  const { events } = new Herald({ url: system.gateway, token: project.token });
  const ids = new Set<string>();
  for await (const { id } of events.follow({ since, signal: AbortSignal.timeout(30_000) }))
    if (ids.add(id).size >= count) break;
  return ids;
};

test("a receiver that fails, hangs and recovers sees every event, whatever is killed meanwhile", {
  timeout: 360_000,
}, async () => {
  const since = new Date();
  const [project, other] = [await system.project("Told"), await system.project("Other")];
  const webhook = await createWebhook(project);
  await createWebhook(other);
  const begin = await published(project);

  for (let round = 0; round < 3; round++) {
    const sends: Promise<{ id: string }>[] = [];
    for (let each = 0; each < 3; each++) {
      await project.register({ topics: [`round-${round}`] });
      await other.register();
      sends.push(project.send({ title: `${round}/${each}`, targets: ["all"] }));
      sends.push(other.send({ title: "Hello", targets: ["all"] }));
    }
    await Promise.all(sends);
    // Kill it during its work: some events are posted, some are stored, some are not yet read.
    await system.services.analytics.kill();
  }
  await system.services.analytics.ready();
  for (const one of [project, other]) for (const { id } of await one.notifications()) await one.final(id);

  await eventually(
    async () => {
      const all = await published(project);
      expect(all.size).toBeGreaterThan(begin.size + 20);
      const taken = idsOf(receivedOf(project).filter((one) => one.taken));
      expect([...all].filter((id) => !begin.has(id) && !taken.has(id))).toEqual([]);
    },
    // Two requests hang until their timeout of 20 s, and a killed one is repeated after 35 s.
    { timeoutMs: 180_000 },
  );

  for (const one of [project, other]) {
    for (const { event, genuine } of receivedOf(one)) {
      expect(genuine).toBe(true);
      expect(event.data.project_id).toBe(one.id);
    }
  }
  // A repeated request has the same message id.
  const received = receivedOf(project);
  expect(new Set(received.map(({ messageId }) => messageId)).size).toBe(idsOf(received).size);
  expect(received.filter((one) => !one.taken).length).toBeGreaterThan(hanging);

  // The HTTP stream has the same events, and none of the other project.
  const all = await published(project);
  expect(await streamed(project, since, all.size)).toEqual(all);
  // Nothing else was posted.
  expect([...idsOf(received)].filter((id) => !all.has(id))).toEqual([]);

  // Eventually the stored messages agree too.
  await eventually(
    async () => {
      const waiting = await project.call(`GET /webhooks/${webhook}/messages?status=waiting`);
      expect(expectStatus(waiting, 200).body.pagination.count).toBe(0);
    },
    { timeoutMs: 60_000 },
  );
});
