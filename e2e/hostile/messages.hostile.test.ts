import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceOf } from "@herald/bus/permissions";
import * as contracts from "@herald/contracts";
import {
  type DurableName,
  durables,
  errors,
  headerNames,
  type MessageContract,
  messages,
  type RequestContract,
} from "@herald/contracts";
import { type BrokerHands, eventually, expectStatus, operateBroker, readStream, request } from "@herald/testing";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System, serviceNames, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { jsonOf, mangled } from "./mangle.ts";
import { memoryOf } from "./memory.ts";
import { startOrdinary } from "./ordinary.ts";
import { sampleOf } from "./sample-schema.ts";
import { scale } from "./scale.ts";
import { newWorld, type World } from "./world.ts";

let system: System;
let hands: BrokerHands;
/** The project that the malformed messages name. */
let world: World;
beforeAll(async () => {
  // Logging a line for each dead letter would be most of the work.
  system = await startSystem({ env: { HERALD_LOG_LEVEL: "fatal" } });
  hands = await operateBroker(system.broker);
  world = await newWorld(system, "Garbage");
  await hands.limit("PUSH_DLQ", 1024 * 1_048_576); // one dead letter for each message, which the test reads at the end
});
afterAll(async () => {
  await hands?.close();
  await system?.stop();
});
logOnFailure(() => system);

const each = scale(10_000, 50);
const seed = 20_260_101;
const settledWithin = { timeoutMs: scale(600_000, 120_000) };
const atATime = 128;

const pids = () => serviceNames.map((name) => `${name} ${system.services[name].pid()}`);
const memory = async () =>
  (await Promise.all(serviceNames.map(async (name) => `${name} ${await memoryOf(system, name)}`))).join(", ");

/** The released examples of every contract, in their form on the wire. */
async function examples(): Promise<{ contract: MessageContract; subject: string; data: unknown }[]> {
  const folder = join(import.meta.dirname, "../../packages/contracts/fixtures");
  const files = (await readdir(folder)).filter((file) => !file.slice(0, -".json".length).includes("."));
  const read = await Promise.all(
    files.map(async (file) => {
      const contract = messages[file.replace(".json", "") as keyof typeof messages] as unknown as MessageContract;
      return { contract, ...JSON.parse(await readFile(join(folder, file), "utf8")) };
    }),
  );
  expect(read.map(({ contract }) => contract.name).sort()).toEqual(Object.keys(messages).sort());
  // This message deletes the project, after which services process less, so it comes last.
  return read.sort(
    (a, b) => Number(a.contract.name === "ProjectDeletedV1") - Number(b.contract.name === "ProjectDeletedV1"),
  );
}

/** Replaces the ids of an example by those of an existing project, device and notification. */
const real = <Value>(value: Value): Value =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll(/prj_\w{26}/g, world.project.id)
      .replaceAll(/dev_\w{26}/g, world.device.id)
      .replaceAll(/ntf_\w{26}/g, world.notification.id)
      .replaceAll(/top_\w{26}/g, world.topic.id)
      .replaceAll(/whk_\w{26}/g, world.webhook),
  );

/** Each lane and platform of a project holds eight batches, so the messages go to many projects. */
const subjectOf = (subject: string, index: number): string =>
  subject.startsWith("push.deliver.")
    ? subject.replace(/prj_\w{26}$/, `prj_${String(index % 2_000).padStart(26, "0")}`)
    : subject;

const takes = (filters: readonly string[], subject: string) =>
  filters.some((filter) => {
    const [wanted, given] = [filter.split("."), subject.split(".")];
    return (
      (wanted.at(-1) === ">" || wanted.length === given.length) &&
      wanted.every((token, at) => token === "*" || token === ">" || token === given[at])
    );
  });
/** Of these events analytics reads more than that they are objects. */
const counted: ReadonlySet<string> = new Set(
  [
    contracts.DeliveryAcceptedV1,
    contracts.DeliveryFailedV1,
    contracts.NotificationAcceptedV1,
    contracts.NotificationChangedV1,
  ].map(({ name }) => name),
);

const anyObject = (json: unknown) => typeof json === "object" && json !== null && !Array.isArray(json);

const allSettled = () =>
  eventually(async () => {
    for (const name of own) expect(`${name} ${await hands.left(durables[name].stream, name)}`).toBe(`${name} 0`);
  }, settledWithin);

const own = (Object.keys(durables) as DurableName[]).filter((name) => serviceOf(name) !== undefined);

test("mangled messages to every consumer: settled, or dead letters with a reason", async ({ task }) => {
  const [running, held] = [pids(), await memory()];
  const ordinary = await system.project("Ordinary");
  const { device } = await ordinary.register();
  const sending = startOrdinary(ordinary, device.id);
  const malformed: Partial<Record<DurableName, number>> = {};
  const published = new Set<string>();
  const refused = new Set<string>();
  const addressed = new Set([world.device.token, device.token]);
  const emptied = new Set<DurableName>();
  const all = await examples();
  for (const [at, { contract, subject, data }] of all.entries()) {
    const known = durableOf(subject);
    const bodies = fc.sample(fc.oneof({ weight: 9, arbitrary: mangled(data) }, mangled(real(data))), {
      numRuns: each,
      seed: seed + at,
    });
    // One for each durable: an empty message ends a pull request across accounts, and what the broker delivers to it meanwhile comes again
    // only after the ack wait.
    if (!known.some((durable) => emptied.has(durable))) bodies[0] = Buffer.alloc(0);
    for (const durable of known) emptied.add(durable);
    await inParallel(bodies, atATime, async (body, index) => {
      published.add(body.toString());
      const parsed = jsonOf(body);
      const valid = parsed !== undefined && contract.schema.safeParse(parsed.json).success;
      if (valid && contract.name === "SendGroupV1")
        for (const { data: one } of contracts.readGroup(parsed.json as contracts.SendGroupV1).malformed) {
          // It becomes a dead letter alone, and the others of its group are sent.
          published.add(JSON.stringify(one));
          malformed["dispatch-send-groups"] = (malformed["dispatch-send-groups"] ?? 0) + 1;
          refused.add(`dispatch-send-groups ${JSON.stringify(one)}`);
        }
      for (const durable of known) {
        const anyBody = durable === "analytics-events" && !counted.has(contract.name);
        const takenBy = anyBody ? parsed !== undefined && anyObject(parsed.json) : valid;
        if (takenBy) continue;
        malformed[durable] = (malformed[durable] ?? 0) + 1;
        refused.add(`${durable} ${body}`);
      }
      if (valid) for (const { token } of recipients(parsed?.json)) addressed.add(token);
      const where = index % 10 === 0 ? real(subject) : subject;
      // A full lane accepts a batch after another has left.
      await eventually(() => hands.publish(subjectOf(where, index), body), settledWithin);
    });
  }
  const { done, failed } = await sending.stop();
  expect(failed).toEqual([]);
  await allSettled();
  expect(pids()).toEqual(running);

  const letters = (await readStream(system.broker, "PUSH_DLQ")).map(({ subject, headers, body }) => ({
    body,
    durable: subject.replace("push.dlq.v1.", ""),
    reason: headers[headerNames.deadReason] ?? "",
    detail: headers[headerNames.deadDetail] ?? "",
  }));
  expect(letters.filter(({ reason, detail }) => !(reason in errors) || detail === "")).toEqual([]);
  // No service may turn a valid message into one that another service refuses.
  expect(
    letters.filter(({ reason, body }) => reason === "schema" && !published.has(body) && body !== "not JSON"),
  ).toEqual([]);
  const said: Partial<Record<string, number>> = {};
  // A consumer may refuse messages that their contract accepts, for example with an invalid target.
  for (const { durable, body } of letters)
    if (refused.has(`${durable} ${body}`)) said[durable] = (said[durable] ?? 0) + 1;
  expect(said).toEqual(malformed);

  const pushes = await system.simulators.pushes();
  expect(pushes.filter(({ token }) => !addressed.has(token))).toEqual([]);
  expect(pushes.filter((push) => payloadOf(push) === undefined)).toEqual([]);
  const reasons = Object.entries(Object.groupBy(letters, ({ reason }) => reason));
  show(task, {
    contracts: all.length,
    messages: all.length * each,
    "dead letters": reasons.map(([reason, some]) => `${some?.length} ${reason}`).join(", "),
    "MB before": held,
    "MB after": await memory(),
    "ordinary sends meanwhile": done,
  });
});

const durableOf = (subject: string): DurableName[] => own.filter((name) => takes(durables[name].filters, subject));

/** The recipients of a valid batch, who may get pushes. */
const recipients = (json: unknown): { token: string }[] => {
  const batch = contracts.DeliverBatchV1.schema.safeParse(json);
  return batch.success ? batch.data.devices : [];
};

test("garbage in dead letters, schedule and buckets: readers survive", async ({ task }) => {
  const running = pids();
  const letters = fc.sample(mangled({ projectId: world.project.id }), { numRuns: each, seed });
  const header = fc.sample(fc.string({ unit: "grapheme-ascii", maxLength: 30 }), { numRuns: each, seed });
  await inParallel(letters, atATime, async (body, index) => {
    const text = header[index] ?? "";
    await hands.publish(`push.dlq.v1.${own[index % own.length]}`, body, {
      [headerNames.deadSubject]: index % 2 ? "push.cmd.v1.dispatch.send.a.b" : text.replaceAll(/[^\x21-\x7e]/g, ""),
      [headerNames.deadSequence]: text.replaceAll(/[^\x21-\x7e]/g, ""),
      [headerNames.deadPublishedAt]: text.replaceAll(/[^\x21-\x7e]/g, ""),
    });
  });
  const due = fc.sample(mangled({ kind: "batch", projectId: world.project.id, key: "a", id: "a" }), {
    numRuns: each,
    seed,
  });
  await inParallel(due, atATime, (body, index) =>
    hands.publish(["push.due.v1.x", "push.due.v1.batch", "push.due.v1.a.b.c.d.e"][index % 3] ?? "", body),
  );
  const record = { id: world.tokenId, projectId: world.project.id, scopes: ["send"], openRegistration: true };
  const records = fc.sample(mangled(record), { numRuns: each, seed });
  const place = (index: number, length: number) => String(index % 500).padStart(length, "a");
  const keys = (index: number) => [
    `push_replays.${(index % 500) + 1}`, // of the first dead letters
    `push_idempotency.${place(index, 22)}`,
    `push_tokens.${place(index, 64)}`,
    `push_projects.prj_${String(index % 500).padStart(26, "0")}.settings`,
    `push_projects.prj_${String(index % 500).padStart(26, "0")}.providers`,
    `push_projects.${index}`,
  ];
  await inParallel(records, atATime, async (body, index) => {
    for (const key of keys(index)) await hands.publish(`$KV.${key}`, body);
  });
  await allSettled();
  expect(pids()).toEqual(running);
  const listed = await request(system.gateway, "GET /admin/v1/dead-letters?per_page=100", { token: system.adminToken });
  expect(expectStatus(listed, 200).body.data).toHaveLength(100);
  const project = await system.project("After the buckets");
  const { device } = await project.register();
  const { id } = await project.send({ title: "Hello", targets: [device.id] });
  expect((await project.final(id)).counts.accepted).toBe(1);
  show(task, { "dead letters": letters.length, schedules: due.length, records: records.length * keys(0).length });
});

const questions = Object.entries<unknown>(contracts)
  .filter(([name]) => name.endsWith("Requests"))
  .flatMap(([, resource]) => Object.values(resource as object) as RequestContract[]);

test("mangled requests to every service: answered, never with an internal error", async ({ task }) => {
  const running = pids();
  const codes: Record<string, number> = {};
  const wrong: string[] = [];
  for (const [at, { name, subject, request }] of questions.entries()) {
    const sample = sampleOf(request);
    const bodies = fc.sample(fc.oneof(mangled(sample), mangled(real(sample))), { numRuns: each, seed: seed + at });
    await inParallel(bodies, 48, async (body) => {
      const answered = await hands.ask(subject, body).catch((error: Error) => `throttle: ${error.message}`);
      const code = answered.startsWith("throttle")
        ? "throttle"
        : (/^\{"error":\{"code":"([a-z-]+)"/.exec(answered)?.[1] ?? "an answer");
      codes[code] = (codes[code] ?? 0) + 1;
      const asked = jsonOf(body);
      const valid = asked !== undefined && request.safeParse(asked.json).success;
      if (code === "throttle" || code === "internal" || (!valid && code !== "schema"))
        wrong.push(`${name} ${body.toString().slice(0, 300)}: ${answered.slice(0, 200)}`);
    });
  }
  expect(wrong.slice(0, 20)).toEqual([]);
  expect(pids()).toEqual(running);
  const project = await system.project("After the questions");
  const { device } = await project.register();
  const { id } = await project.send({ title: "Hello", targets: [device.id] });
  expect((await project.final(id)).counts.accepted).toBe(1);
  show(task, {
    questions: questions.length,
    asked: questions.length * each,
    answered: Object.entries(codes)
      .map(([code, count]) => `${count} ${code}`)
      .join(", "),
  });
});
