import { Scope } from "@herald/contracts";
import { type HttpAnswer, request } from "@herald/testing";
import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { callsOf, credentialOf, type RouteCall } from "./route-calls.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { restingSnapshotOf } from "./snapshot.ts";
import { newToken, newWorld, type World } from "./world.ts";

let system: System;
let world: World;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  const made = await newWorld(system, "Operators");
  // A missing scope would be refused before the fields are read.
  const { token } = await newToken(system, made.project, Scope.options);
  world = { ...made, project: { ...made.project, token } };
});
logOnFailure(() => system);

/** As JSON text, because `__proto__` is an ordinary field only there. */
const operators: readonly string[] = [
  '{"$ne":null}',
  '{"$gt":""}',
  '{"$regex":".*"}',
  '{"$where":"sleep(5000)"}',
  '[{"$ne":null}]',
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '{"$set":{"scopes":["send"]}}',
].slice(0, scale(8, 3));

const surplus = ["$where", "$or", "__proto__", "constructor", "project_id[$ne]"];

type Tried = { readonly what: string; readonly body?: string; readonly path: string };

/** The paths of all values in a body: every field, every element, and the body itself. */
function placesOf(body: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof body !== "object" || body === null) return [at];
  return [at, ...Object.entries(body).flatMap(([name, inner]) => placesOf(inner, [...at, name]))];
}

/** A unique placeholder, which is replaced in the JSON text by values that only JSON can express. */
const hole = "\u0001hole\u0001";

function put(body: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const copy = (Array.isArray(body) ? [...body] : { ...(body as object) }) as Record<string, unknown>;
  copy[name] = put(copy[name], rest, value);
  return copy;
}

const withText = (body: unknown, at: readonly string[], text: string) =>
  JSON.stringify(put(body, at, hole)).replace(JSON.stringify(hole), () => text);

function attacksOn({ method, path, body, route }: RouteCall): Tried[] {
  // fetch sends no body with GET; the attack on HTTP does.
  const inBody = (method === "GET" ? [] : operators).flatMap((operator) =>
    body === undefined
      ? [{ what: `body ${operator}`, body: operator, path }]
      : placesOf(body).map((at) => ({
          what: `body.${at.join(".")} ${operator}`,
          body: withText(body, at, operator),
          path,
        })),
  );
  const added = body === undefined ? [] : placesOf(body).flatMap((at) => addedTo(body, at, path));
  const [plain = "", query] = path.split("?");
  const names = ["x", ...Object.keys((route.query as { shape?: object } | undefined)?.shape ?? {})];
  const inQuery = names.flatMap((name) =>
    [`${name}[$ne]=1`, `${name}[]=$gt`, `${name}=${encodeURIComponent('{"$ne":null}')}`, `$where=1`].map((one) => ({
      what: `query ${one}`,
      path: `${plain}?${query === undefined ? "" : `${query}&`}${one}`,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })),
  );
  const parts = plain.split("/");
  const inPath = parts.flatMap((part, index) =>
    /^\w{3}_|^news-of|^\d+$/.test(part)
      ? ['{"$ne":null}', "[$ne]", "$where"].map((one) => ({
          what: `path ${one}`,
          path: [...parts.slice(0, index), encodeURIComponent(one), ...parts.slice(index + 1)].join("/"),
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }))
      : [],
  );
  return [...inBody, ...added, ...inQuery, ...inPath].filter(({ what }) => !lawful(what));
}

function addedTo(body: unknown, at: readonly string[], path: string): Tried[] {
  const here = at.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], body);
  if (typeof here !== "object" || here === null || Array.isArray(here)) return [];
  return surplus.map((name) => ({
    what: `body.${[...at, name].join(".")}`,
    body: withText(body, [...at, hole], '{"$ne":null}').replace(JSON.stringify(hole), () => JSON.stringify(name)),
    path,
  }));
}

/**
 * Allowed: the state and the attributes of an activity are the app's, in an app's metadata `constructor` is an ordinary key, and a user id, the beginning of one and a push token may be any text,
 * because only hashes and escaped prefixes are queried.
 */
const lawful = (what: string) =>
  /\bcontent_state\b|\battributes\b|\bmetadata\b.*constructor|^query (user|user_id|prefix|token)=/.test(what);

/** Routes that refuse rows of their own: whether the response accepts none of them. */
const rowsOf: Readonly<Record<string, (data: unknown) => boolean>> = {
  putDevices: (data) => (data as { result: string }[]).every(({ result }) => result === "refused"),
  sendNotifications: (data) => (data as { errors?: string[] }[]).every(({ errors }) => errors !== undefined),
  // A line is refused later, in the import's errors.
  uploadImport: (data) => {
    const { lines_stored, created, updated } = data as Record<"lines_stored" | "created" | "updated", number>;
    return lines_stored === 1 && created === 0 && updated === 0;
  },
};

/** A body with a list of rows keeps one: otherwise the others would be accepted, as they should. */
const withOneRow = (call: RouteCall): RouteCall => {
  if (!(call.route.operationId in rowsOf) || typeof call.body !== "object") return call;
  const cut = Object.entries(call.body as object).map(([name, rows]) => [name, (rows as unknown[]).slice(0, 1)]);
  return { ...call, body: Object.fromEntries(cut) };
};

/** What the attack may not change: everything but the rows on what an operator tried, and the import with its refused lines. */
const stateOf = async () => {
  const all = Object.entries(await restingSnapshotOf(system, world.project.id));
  return Object.fromEntries(all.filter(([name]) => !/^registry\.(auditRows|import)/.test(name)));
};

test("database operators, prototypes and unknown fields on every route", async ({ task }) => {
  const before = await stateOf();
  const calls = callsOf(world).map(withOneRow);
  const tried = calls.flatMap((call) => attacksOn(call).map((attack) => ({ call, attack })));
  const statuses: Record<string, number> = {};
  const wrong: string[] = [];
  await inParallel(tried, 8, async ({ call: { route, method }, attack }) => {
    const answer: HttpAnswer = await request(system.gateway, `${method} ${attack.path}`, {
      token: credentialOf(route, system.adminToken, world),
      ...(attack.body === undefined ? {} : { body: attack.body }),
    });
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    const refusesRows = answer.status < 300 && rowsOf[route.operationId]?.(answer.body.data);
    // Eight at once are more than a project may have open, and what came first completed the file.
    const refusesFile =
      ["uploadImport", "uploadRecipients"].includes(route.operationId) && [409, 429].includes(answer.status);
    if (![400, 404, 422].includes(answer.status) && !refusesRows && !refusesFile)
      wrong.push(`${route.operationId} ${attack.what}: ${answer.status} ${answer.text.slice(0, 200)}`);
  });
  expect(wrong).toEqual([]);
  expect(await stateOf()).toEqual(before);
  const { id } = await world.project.send({ title: "Still there", targets: [world.device.id] });
  expect((await world.project.final(id)).counts.accepted).toBe(1);
  const answered = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
  show(task, { routes: calls.length, requests: tried.length, answered: answered.join(", ") });
});
