import { setTimeout as delay } from "node:timers/promises";
import { eventually, request } from "@herald/testing";
import { inParallel } from "./in-parallel.ts";
import { deliveryKey } from "./ledger.ts";
import type { Project } from "./project.ts";
import { deviceOf, payloadOf, wasAccepted } from "./simulators.ts";
import type { System } from "./system.ts";

/** Reports wait for gateways, broker and database that are restarted. */
const takenWithinMs = 120_000;
const concurrent = 8;

/** Of the notification, and one that it does not have: an open with it counts without a button. */
const pressed = ["track", "later", "of-another", undefined];

/** What a device reported, once Herald has accepted it. */
export type Reported = {
  readonly notificationId: string;
  readonly deviceId: string;
  readonly asked: boolean;
  readonly dismissed: boolean;
  /** Opened, by this button; null: without one. */
  readonly opened?: string | null;
};

export type ReportLoad = {
  /** By delivery. */
  readonly reported: ReadonlyMap<string, Reported>;
  /** What repeats of a push disagreed about. */
  readonly problems: readonly string[];
  /** Ends after `pushes` deliveries, each with all that its device reports. Throws its errors. */
  finished(pushes: number): Promise<void>;
};

/**
 * Reports the pushes of a project as the kits do: a receipt if the push asks for one, from every third device a dismissal and from every
 * third an open, some by a button. Each report goes to each gateway until it is accepted there, as if the first answer was lost.
 */
export function startReports(system: System, project: Project, gateways: readonly string[]): ReportLoad {
  const reported = new Map<string, Reported>();
  const problems: string[] = [];
  const follow = system.simulators.follow();
  let begun = 0;

  const put = (url: string, path: string, body: object) =>
    eventually(
      async () => {
        const answer = await request(`${url}/api/v1`, `PUT ${path}`, { body });
        if (answer.status !== 204) throw new Error(`PUT ${path} was answered ${answer.status}: ${answer.text}`);
      },
      { timeoutMs: takenWithinMs },
    );

  const report = async ({ notificationId, deviceId, asked, token }: Push) => {
    const number = begun++;
    const opens = number % 3 === 1;
    const button = pressed[number % pressed.length];
    const one = {
      notificationId,
      deviceId,
      asked,
      dismissed: asked && number % 3 === 0,
      ...(opens && { opened: button ?? null }),
    };
    const verbs = [
      ...(asked ? (["received"] as const) : []),
      ...(one.dismissed ? (["dismissed"] as const) : []),
      ...(opens ? (["open"] as const) : []),
    ];
    for (const verb of verbs) {
      const body = { project_id: project.id, token, ...(verb === "open" && button !== undefined && { button }) };
      for (const url of gateways) await put(url, `/notifications/${notificationId}/${verb}`, body);
    }
    reported.set(deliveryKey(notificationId, deviceId), one);
  };

  type Push = Pick<Reported, "notificationId" | "deviceId" | "asked"> & { readonly token: string };
  const known = new Map<string, boolean>();
  const newPushes = async (): Promise<Push[]> => {
    const found: Push[] = [];
    for (const push of await eventually(follow)) {
      if (!wasAccepted(push) || payloadOf(push).project_id !== project.id) continue;
      const { notification_id: notificationId, token, receipt } = payloadOf(push);
      const [deviceId, asked] = [deviceOf(push), receipt !== undefined];
      const key = deliveryKey(notificationId, deviceId);
      const before = known.get(key);
      known.set(key, asked);
      if (before === undefined) found.push({ notificationId, deviceId, asked, token });
      else if (before !== asked) problems.push(`${key}: only one of two pushes asked for a receipt`);
    }
    return found;
  };

  let expected = Number.POSITIVE_INFINITY;
  const work = (async () => {
    while (reported.size < expected) {
      await inParallel(await newPushes(), concurrent, report);
      await delay(100);
    }
  })();
  work.catch(() => {}); // `finished` throws it

  return {
    reported,
    problems,
    finished: (pushes) => {
      expected = pushes;
      return work;
    },
  };
}
