import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Answered, eventually, request } from "@herald/testing";
import type { Promised } from "./invariants.ts";
import { deliveryKey } from "./ledger.ts";
import type { Content, Project } from "./project.ts";
import { deviceOf, payloadOf, wasAccepted } from "./simulators.ts";
import type { System } from "./system.ts";

/** Nothing is taken while the bus is unavailable, which is for 60 s in the longest of the faults, and a while to notice its return. */
const takenWithinMs = 120_000;
/** A second, of one sender. */
const sendsOfOne = 10;

/** As a backend that does it right: the same key until there is a 202, through dead gateways and 503s. */
export function sendSurely(
  project: Project,
  notification: Content,
  onAnswer: (status: number) => void = () => {},
): Promise<string> {
  const headers = { "idempotency-key": randomUUID() };
  return eventually(
    async () => {
      const answer = await project.call("POST /notifications", { body: { notification }, headers });
      onAnswer(answer.status);
      if (answer.status !== 202) throw new Error(`answered ${answer.status}: ${answer.text}`);
      return answer.body.data.id as string;
    },
    { timeoutMs: takenWithinMs },
  );
}

export type Load = {
  /** What was answered 202 so far. */
  readonly promised: Promised[];
  /** Deliveries whose open was answered 204 so far. */
  readonly opened: ReadonlySet<string>;
  /** Statuses of all answers to sends so far: how many of each. */
  readonly answers: ReadonlyMap<number, number>;
  /** The same of reading one in the moment when it was accepted, as often as there is an answer: an id that was given out is never a 404. */
  readonly reads: ReadonlyMap<number, number>;
  /** Ends it, and throws what it could not do. */
  stop(): Promise<void>;
};

/**
 * Sends to one of the devices, `perSecond` of them while answers come at once, and an open for every tenth push that arrives in the
 * project. Each sender of ten a second waits for its answer, so that nothing piles up while there is no answer.
 */
export function startLoad(
  system: System,
  project: Project,
  devices: readonly { token: string }[],
  { perSecond = 10 }: { perSecond?: number } = {},
): Load {
  const promised: Promised[] = [];
  const opened = new Set<string>();
  const answers = new Map<number, number>();
  const reads = new Map<number, number>();
  let reading: Promise<void> | undefined;
  let sent = 0;
  let stopping = false;
  let failure: unknown;

  const countIn = (counts: Map<number, number>) => (status: number) => {
    counts.set(status, (counts.get(status) ?? 0) + 1);
  };
  const senders = Math.ceil(perSecond / sendsOfOne);
  const sendOn = async () => {
    while (!stopping) {
      const number = sent++;
      const token = devices[number % devices.length]?.token;
      const id = await sendSurely(
        project,
        { title: `Single ${number}`, targets: [`token:${token}`] },
        countIn(answers),
      );
      promised.push({ id, devices: 1 });
      // One at a time, beside the sends: without a database a read takes seconds until it is refused.
      reading ??= project
        .call(`GET /notifications/${id}`)
        .then(({ status }) => countIn(reads)(status), noAnswer)
        .finally(() => {
          reading = undefined;
        });
      await delay(1_000 / sendsOfOne); // the load's own pace: it waits for nothing
    }
  };
  const openOn = async () => {
    const follow = system.simulators.follow();
    let pushes = 0;
    while (!stopping) {
      for (const push of await follow()) {
        if (!wasAccepted(push)) continue; // what was refused may have no payload
        const { project_id, notification_id, token } = payloadOf(push);
        if (project_id !== project.id || pushes++ % 10 !== 0) continue;
        await openSurely(`${system.gateway}/api/v1`, notification_id, { project_id, token });
        opened.add(deliveryKey(notification_id, deviceOf(push)));
      }
      await delay(100);
    }
  };
  const work = Promise.all(
    [...Array<typeof sendOn>(senders).fill(sendOn), openOn].map((one) =>
      one().catch((error: unknown) => {
        failure ??= error;
        stopping = true;
      }),
    ),
  );
  return {
    promised,
    opened,
    answers,
    reads,
    stop: async () => {
      stopping = true;
      await work;
      await reading;
      if (failure !== undefined) throw failure;
    },
  };
}

/** The gateway died while it was asked, which says nothing. */
const noAnswer = () => {};

/** As an app does: again until it is taken. */
const openSurely = (api: string, id: string, body: { project_id: string; token: string }): Promise<Answered> =>
  eventually(
    async () => {
      const answer = await request(api, `PUT /notifications/${id}/open`, { body });
      if (answer.status !== 204) throw new Error(`an open was answered ${answer.status}: ${answer.text}`);
      return answer;
    },
    { timeoutMs: takenWithinMs },
  );
