import type { Delivery, Notification } from "@herald/contracts";
import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { compareEvents } from "./compare-events.ts";
import { inParallel } from "./in-parallel.ts";
import { deliveryKey, type Ledger } from "./ledger.ts";
import type { Project } from "./project.ts";
import { deviceOf, payloadOf, wasAccepted } from "./simulators.ts";
import type { System } from "./system.ts";

/** A notification that was accepted with 202, and its expected number of devices. */
export type Promised = { readonly id: string; readonly devices?: number };

export type Report = {
  /** Accepted, but not final in time. */
  readonly lost: string[];
  /** Deliveries that the provider accepted more than once without a mark in the ledger that this may have happened. */
  readonly unmarked: string[];
  /** All other differences between counts, ledger, the provider's log and events. */
  readonly wrong: string[];
  /** Deliveries that the provider accepted more than once. */
  readonly repeated: number;
  /** Times of the first repeats, and their rows in the ledger. */
  readonly repeats: readonly string[];
  readonly deliveries: number;
};

export const nothingBroken = { lost: [], unmarked: [], wrong: [] };

/**
 * Compares the accepted notifications of a project with its counts, its ledger, the provider's log and the events, after everything is
 * final or `timeoutMs` have passed. `opened` are the deliveries whose open was answered 204: exactly these must be counted.
 * `events: false` skips the events, for a broker that has lost them.
 */
export async function checkInvariants(
  system: System,
  project: Project,
  promised: readonly Promised[],
  {
    timeoutMs = 60_000,
    opened,
    events = true,
  }: { timeoutMs?: number; opened?: ReadonlySet<string>; events?: boolean } = {},
): Promise<Report> {
  const notifications = await untilFinal(project, promised, { timeoutMs, opens: opened?.size ?? 0 });
  const lost = promised.filter(({ id }) => notifications.get(id)?.completed_at === undefined).map(({ id }) => id);
  const promises = new Set(promised.map(({ id }) => id));
  const wrong = [...notifications.keys()].filter((id) => !promises.has(id)).map((id) => `${id}: it was never promised`);

  const final = promised.filter(({ id }) => !lost.includes(id));
  const rows = await inParallel(final, 8, ({ id }) => project.deliveries(id));
  // Opens are listed as soon as they are stored, and counted a moment later.
  await eventually(
    async () => {
      for (const one of await project.notifications()) notifications.set(one.id, one);
      if (final.some(({ id }, index) => (notifications.get(id)?.counts.opened ?? 0) < openedIn(rows[index] ?? [])))
        throw new Error("not all opens are counted yet");
    },
    { timeoutMs },
  ).catch(() => {});
  const ledger = new Map<string, Delivery>();
  for (const [index, { id, devices }] of final.entries()) {
    const notification = notifications.get(id) as Notification;
    wrong.push(...compareCounts(notification, rows[index] ?? [], devices));
    for (const row of rows[index] ?? []) ledger.set(deliveryKey(id, row.device_id), row);
  }
  if (opened) wrong.push(...compareOpened(ledger, opened));
  const { unmarked, repeated, repeats, problems } = compareProvider(
    ledger,
    await system.simulators.pushes(),
    project.id,
    lost,
  );
  // If a publisher dies, a sweep publishes the event some seconds later.
  let differences: string[] = [];
  await eventually(
    async () => {
      differences = events ? await compareEvents(system, project, ledger, notifications) : [];
      if (differences.length > 0) throw new Error("the events do not agree yet");
    },
    { timeoutMs: 20_000 },
  ).catch(() => {});
  wrong.push(...problems, ...differences, ...project.violations.map((counts) => `did not add up: ${counts}`));
  return { lost, unmarked, wrong, repeated, repeats, deliveries: ledger.size };
}

/** The project's notifications, after every promised notification is final and all opens are counted. */
async function untilFinal(
  project: Project,
  promised: readonly Promised[],
  { timeoutMs, opens }: { timeoutMs: number; opens: number },
): Promise<Map<string, Notification>> {
  let notifications = new Map<string, Notification>();
  await eventually(
    async () => {
      const all = await project.notifications();
      notifications = new Map(all.map((one) => [one.id, one]));
      if (promised.some(({ id }) => notifications.get(id)?.completed_at === undefined)) throw new Error("not yet");
      if (all.reduce((sum, { counts }) => sum + counts.opened, 0) < opens) throw new Error("not all opens yet");
    },
    { timeoutMs },
  ).catch(() => {});
  return notifications;
}

const openedIn = (rows: readonly Delivery[]): number => rows.filter((row) => row.opened_at !== undefined).length;

const statuses = ["accepted", "failed", "expired", "cancelled", "skipped", "pending"] as const;

/** Checks that the notification's counts match its deliveries, and that each device has one row. */
function compareCounts({ id, counts }: Notification, rows: readonly Delivery[], devices?: number): string[] {
  const problems: string[] = [];
  const distinct = new Set(rows.map(({ device_id }) => device_id)).size;
  if (distinct !== rows.length) problems.push(`${id}: ${rows.length} deliveries to ${distinct} devices`);
  if (counts.devices !== rows.length) problems.push(`${id}: counts ${counts.devices} devices, lists ${rows.length}`);
  if (devices !== undefined && counts.devices !== devices)
    problems.push(`${id}: addressed ${counts.devices} devices instead of ${devices}`);
  for (const status of statuses) {
    const listed = rows.filter((row) => row.status === status).length;
    if (counts[status] !== listed) problems.push(`${id}: counts ${counts[status]} ${status}, lists ${listed}`);
  }
  const opened = openedIn(rows);
  if (counts.opened !== opened) problems.push(`${id}: counts ${counts.opened} opened, lists ${opened}`);
  return problems;
}

function compareOpened(ledger: Ledger, opened: ReadonlySet<string>): string[] {
  const uncounted = [...opened].filter((key) => ledger.get(key)?.opened_at === undefined);
  const invented = [...ledger].filter(([key, { opened_at }]) => opened_at !== undefined && !opened.has(key));
  return [
    ...uncounted.map((key) => `${key}: its open was answered 204 and is not counted`),
    ...invented.map(([key]) => `${key}: an open is counted that was not sent`),
  ];
}

/** The value by which a device or its provider recognises a repeated push. */
const identity = ({ provider, headers, payload }: Push): string => {
  switch (provider) {
    case "apns":
      return `${headers["apns-id"]} ${headers["apns-collapse-id"]}`;
    case "fcm":
      return String((payload as { android?: { notification?: { tag?: string } } }).android?.notification?.tag);
    case "webpush":
      return String(headers.topic);
  }
};

/** The maximum number of described repeats: usually all have the same cause. */
const maxRepeats = 5;

const whenAccepted = (pushes: readonly Push[]): string => pushes.map(({ at }) => at).join(", ");

const shown = (row: Delivery | undefined): string =>
  row
    ? `${row.status} after ${row.attempts} attempts${row.provider_reason ? `, ${row.provider_reason}` : ""}`
    : "no row";

/** Checks that the provider's log matches the ledger, and that every repeat is marked and recognisable. */
function compareProvider(ledger: Ledger, pushes: readonly Push[], projectId: string, lost: readonly string[]) {
  const accepted = new Map<string, Push[]>();
  for (const push of pushes) {
    if (!wasAccepted(push)) continue; // a refused push may have no payload
    const { project_id, notification_id } = payloadOf(push);
    if (project_id !== projectId || lost.includes(notification_id)) continue;
    const key = deliveryKey(notification_id, deviceOf(push));
    accepted.set(key, [...(accepted.get(key) ?? []), push]);
  }
  const problems: string[] = [];
  const unmarked: string[] = [];
  const repeats: string[] = [];
  let repeated = 0;
  for (const [key, all] of accepted) {
    const row = ledger.get(key);
    if (!row) problems.push(`${key}: the device got what the ledger does not know`);
    else if (row.status !== "accepted" && !row.possible_repeat)
      problems.push(`${key}: the provider accepted it, the ledger says ${row.status}`);
    if (all.length === 1) continue;
    repeated++;
    if (repeats.length < maxRepeats) repeats.push(`${key} by ${all[0]?.provider}: ${whenAccepted(all)}; ${shown(row)}`);
    if (row && !row.possible_repeat) unmarked.push(`${key}: ${all.length} times`);
    if (new Set(all.map(identity)).size !== 1) problems.push(`${key}: its repeats do not replace one another`);
  }
  for (const [key, row] of ledger)
    if (row.status === "accepted" && !accepted.has(key))
      problems.push(`${key}: accepted, and the provider saw nothing`);
  return { problems, unmarked, repeated, repeats };
}
