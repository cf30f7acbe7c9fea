import { randomUUID } from "node:crypto";
import { newNotificationIds, type PersonalTexts, sendGroupOf } from "@herald/contracts";
import { eventually, expectStatus, type HttpAnswer, operateBroker, readStream, request } from "@herald/testing";
import fc from "fast-check";
import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project, Registered } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

let system: System;
let project: Project;
let other: Project;
let known: Registered;
let beside: Registered;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  [project, other] = [await system.project("Generated"), await system.project("Beside")];
  [known, beside] = [await project.register({ metadata: { plan: "free" } }), await other.register()];
  const { token } = await newToken(system, project, ["send", "read", "templates"]);
  const template = {
    title: "{{ x }}",
    body: "{{ y | default: 'none' }}",
    data: { title: "{{ x }}", link_to: "/a/{{ x }}" },
    localizations: { de: { title: "{{ x }}!", image: "https://example.com/{{ x }}.png" } },
    variables: { x: { type: "string" }, y: { type: "string", fallback: "z" } },
  };
  expectStatus(await project.call("PUT /templates/generated", { token, body: { template } }), 201);
  expectStatus(await project.call("POST /templates/generated/publish", { token }), 200);
});
logOnFailure(() => system);

const post = (by: Project, notification: object, headers: Record<string, string> = {}): Promise<HttpAnswer> =>
  by.call("POST /notifications", { body: { notification }, headers });

/** Names of fields, of what every object has, and of nothing. */
const names = [
  ...["title", "body", "link_to", "image", "data", "localizations", "targets", "notification_id", "token", "aps"],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "length", "then", "toJSON"],
  ...["x", "a.b", "$ne", " ", "\0", "\ud800", "ü", "名前", "😀", "x".repeat(256)],
];
const plainTexts = ["Hello", "\0", "\ud800", "😀".repeat(60), "\u202e", "x".repeat(200), "{ { x } }"];
const liquidTexts = [
  ...["{{ x }}", "{{ x }}{{ y | default: 'none' }}", "{% if x %}yes{% else %}no{% endif %}", "{{ user.id }}"],
  ...["{{ device.metadata.plan | default: 'free' }}", "{{ x | append: y | upcase | truncate: 3 }}"],
  ...[`{{ x | truncate: 3 }}${"z".repeat(3_000)}`, `{% assign a = x %}${"{{ a }}".repeat(90)}`],
];
const links = ["/news", "/a/{{ x }}", "https://example.com/{{ x }}", `/{{ x | truncate: 3 }}${"z".repeat(1_900)}`];
const images = ["https://example.com/a.png", "https://example.com/{{ x }}.png"];
/** What no field takes, or few. */
const bad = ["", "y".repeat(9_000), "//evil", "{{", "{% if", "{{ nothing }}", "{{ __proto__ }}"];

/** An object with some of these fields. */
const some = <Value>(field: fc.Arbitrary<string>, of: fc.Arbitrary<Value>, maxLength = 3) =>
  fc.array(fc.tuple(field, of), { minLength: 1, maxLength }).map((fields) => Object.fromEntries(fields));
/** In `times` of ten. */
const maybe = <Value>(of: fc.Arbitrary<Value>, times = 5) =>
  fc.oneof({ weight: times, arbitrary: of }, { weight: 10 - times, arbitrary: fc.constant(undefined) });

const mostly = (good: readonly string[]) =>
  fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...good) },
    { weight: 1, arbitrary: fc.constantFrom(...bad) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  );
const text = mostly([...plainTexts, ...liquidTexts]);
const words = {
  title: text,
  body: maybe(text),
  link_to: maybe(mostly(links), 3),
  image: maybe(mostly(images), 3),
};
const field = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, fc.string({ minLength: 1, maxLength: 9 }));
/** Entries of `data` that are named like a field take what the field takes, and more. */
const data = fc
  .array(fc.tuple(field, text, fc.constantFrom(...links)), { minLength: 1, maxLength: 3 })
  .map((all) => Object.fromEntries(all.map(([own, any, link]) => [own, own === "link_to" ? link : any])));

const value = fc.oneof(fc.constantFrom("1", "\0", "😀", "v".repeat(300), "a/b?c", 1, -1e300, true), fc.string());
const variables = fc
  .record({ x: value, y: value, more: maybe(some(fc.constantFrom("title", "link_to", "to_string"), value)) })
  .map(({ more, ...own }) => ({ ...own, ...more }));
const fewVariables = fc.record({ x: value.map(String) }, { requiredKeys: [] });

const notificationTo = (targets: readonly string[]) =>
  fc.record({
    ...words,
    data: maybe(data),
    localizations: maybe(some(fc.constantFrom("de", "pt-BR", "zh-Hant-TW", "toString"), fc.record(words), 2)),
    web: maybe(some(field, fc.jsonValue({ maxDepth: 2 })), 1),
    ttl: maybe(fc.integer({ min: 0, max: 90 }), 1),
    audience: fc.oneof(
      variables.map((own) => ({ targets: [targets[0]], variables: own })),
      fewVariables.map((own) => ({ targets: [targets[0]], variables: own, template: "generated" })),
      fc
        .array(fc.record({ target: fc.constantFrom(...targets), variables }), { minLength: 1, maxLength: 3 })
        .map((recipients) => ({ recipients })),
      fc
        .array(fc.record({ target: fc.constantFrom(...targets), variables: fewVariables }), {
          minLength: 1,
          maxLength: 3,
        })
        .map((recipients) => ({ recipients, template: "generated" })),
    ),
  });

const shortened = (json: unknown): string => JSON.stringify(json).slice(0, 600);

const deadLetters = async (): Promise<number> => {
  const listed = await request(system.gateway, "GET /admin/v1/dead-letters?per_page=1", { token: system.adminToken });
  return expectStatus(listed, 200).body.meta?.total ?? listed.body.data.length;
};

test("generated sends: never a server error, and none harms its neighbour", async ({ task }) => {
  const seed = Date.now() % 2 ** 31;
  const count = scale(10_000, 600);
  const targets = [`device:${known.device.id}`];
  const sends = fc.sample(notificationTo(targets), { numRuns: count, seed });
  const before = await deadLetters();
  const statuses: Record<number, number> = {};
  const wrong: string[] = [];
  const plain: string[] = [];
  await inParallel(sends, 16, async ({ audience, ...sent }, index) => {
    const notification = { ...sent, ...audience };
    const keyed = index % 2 === 0 ? { "idempotency-key": randomUUID() } : undefined;
    const [answer, neighbour] = await Promise.all([
      post(project, notification, keyed),
      post(other, { title: "Beside", targets: [beside.device.id] }),
    ]);
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    if (![202, 422].includes(answer.status)) wrong.push(`${answer.status} ${shortened(notification)}`);
    if (neighbour.status === 202) plain.push(neighbour.body.data.id);
    else wrong.push(`a neighbour's send beside ${shortened(notification)}: ${neighbour.status}`);
  });
  show(task, {
    sends: count,
    answers: Object.entries(statuses)
      .map(([status, times]) => `${times} ${status}`)
      .join(", "),
    "sends of others accepted": plain.length,
    wrong: wrong.length,
  });
  expect({ seed, wrong: wrong.slice(0, 5) }).toEqual({ seed, wrong: [] });
  // Enough of them are not refused.
  expect(statuses[202]).toBeGreaterThan(count / 4);
  for (const id of plain.slice(-20)) expect((await other.final(id)).counts.accepted).toBe(1);
  expect(await deadLetters()).toBe(before);
});

/** Texts that no gateway compiled. */
const strangeTexts: readonly string[] = [
  ...["", "{", "null", "5", "[]", '"text"', "[".repeat(60_000), '{"title":5}', '{"title":{}}', '{"title":{"nodes":5}}'],
  ...['{"title":{"nodes":[5]}}', '{"title":{"nodes":[null]}}', '{"title":{"nodes":[{"output":{}}]}}', '{"title":null}'],
  '{"title":{"nodes":[{"output":{"from":{"path":["__proto__"]},"filters":[]}}]}}',
  '{"title":{"nodes":[{"output":{"from":{"value":"x"},"filters":[{"filter":"nothing","args":[]}]}}]}}',
  `{"title":{"nodes":[{"output":{"from":${'{"not":'.repeat(8_000)}{"value":true}${"}".repeat(8_000)},"filters":[]}}]}}`,
  `{"title":{"nodes":[${'{"branches":[],"else":['.repeat(2_500)}5${"]}".repeat(2_500)}]}}`,
];

test("malformed sends fail alone in a group on the bus", async ({ task }) => {
  const hands = await operateBroker(system.broker);
  const strange: readonly unknown[] = [null, 5, [], {}, { notificationId: "a.b.>" }, { projectId: project.id }];
  const now = new Date();
  const ids = newNotificationIds(now, strangeTexts.length + 3);
  const [first, second, third, ...rest] = ids;
  if (!first || !second || !third) throw new Error("no ids");
  const send = (notificationId: string, by: Project, id: string, personal?: PersonalTexts) => ({
    ...{ projectId: by.id, notificationId, content: { title: "Hi", targets: [`device:${id}`] }, personal },
    ...{ acceptedAt: now.toISOString(), expiresAt: new Date(now.getTime() + 600_000).toISOString() },
  });
  const broken = {
    ...send(third, project, known.device.id),
    content: { title: "Hi", targets: [], data: { title: 1 } },
  };
  const sends = [
    send(first, other, beside.device.id),
    ...strange,
    broken,
    ...strangeTexts.map((texts, at) =>
      send(rest[at] ?? "", project, known.device.id, { texts, locale: "en", values: { name: "x" } }),
    ),
    send(second, other, beside.device.id),
  ];
  const groupId = sendGroupOf(first);
  await hands.publish(`push.send.v1.group.${groupId}`, JSON.stringify({ groupId, sends }));
  for (const id of [first, second]) expect((await other.final(id)).counts).toMatchObject({ accepted: 1 });
  for (const [at, id] of rest.entries()) {
    const { counts } = await project.final(id);
    // A device gets what can be read of them: at least the title of the content.
    const isNone = strangeTexts[at]?.includes("nodes");
    expect([at, counts.failed + counts.skipped]).toEqual([at, isNone ? 1 : expect.any(Number)]);
  }
  const own = await eventually(async () => {
    const letters = await readStream(system.broker, "PUSH_DLQ");
    const found = letters.filter(({ body }) =>
      [...strange, broken].some((one) => JSON.stringify(one) === String(body)),
    );
    expect(found).toHaveLength(strange.length + 1);
    expect(letters.filter(({ body }) => String(body).includes(groupId))).toEqual([]);
    return found;
  });
  expect(new Set(own.map(({ subject }) => subject))).toEqual(new Set(["push.dlq.v1.dispatch-send-groups"]));
  // A replay publishes each as a message of its own.
  for (const { headers } of own) expect(headers["Herald-Dead-Subject"]).toMatch(/^push\.send\.v1\.one\./);
  await hands.close();
  show(task, { sends: sends.length, "dead letters": own.length, "texts that fail alone": strangeTexts.length });
});
