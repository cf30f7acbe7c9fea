import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { eventually, type HttpAnswer, request } from "@herald/testing";
import type { Promised } from "./invariants.ts";
import { deliveryKey } from "./ledger.ts";
import type { Content, Project } from "./project.ts";
import { deviceOf, payloadOf, wasAccepted } from "./simulators.ts";
import type { System } from "./system.ts";

/** Sends are refused while the bus is unavailable: 60 s in the longest fault, and some time to notice its return. */
const takenWithinMs = 120_000;
/** Sends a second per sender. */
const sendsOfOne = 10;

/** Sends like a correct backend: retries with the same key until a 202, through dead gateways and 503s. */
export function sendSurely(
  project: Project,
  notification: Content,
  onAnswer: (answer: HttpAnswer) => void = () => {},
): Promise<string> {
  const headers = { "idempotency-key": randomUUID() };
  return eventually(
    async () => {
      const answer = await project.call("POST /notifications", { body: { notification }, headers });
      onAnswer(answer);
      if (answer.status !== 202) throw new Error(`answered ${answer.status}: ${answer.text}`);
      return answer.body.data.id as string;
    },
    { timeoutMs: takenWithinMs },
  );
}

export type Load = {
  /** Notifications that were accepted with 202 so far. */
  readonly promised: Promised[];
  /** Deliveries whose open was answered 204 so far. */
  readonly opened: ReadonlySet<string>;
  /** The number of answers to sends so far, by status. */
  readonly answers: ReadonlyMap<number, number>;
  /** The number of answers to reads right after acceptance, by status. A returned id must never be a 404. */
  readonly reads: ReadonlyMap<number, number>;
  /** Ends the load. Throws its errors. */
  stop(): Promise<void>;
};

/**
 * Sends to one device each, `perSecond` sends if answers come at once, and opens every tenth push that arrives in the project. Each sender
 * makes ten sends a second and waits for each answer, so that nothing piles up without answers.
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
      const id = await sendSurely(project, { title: `Single ${number}`, targets: [`token:${token}`] }, (answer) => {
        countIn(answers)(answer.status);
        if (answer.status === 503 && !answer.headers.has("retry-after"))
          failure ??= new Error(`a 503 without Retry-After: ${answer.text}`);
      });
      promised.push({ id, devices: 1 });
      // One read at a time, in parallel to the sends: without a database a refusal takes seconds.
      reading ??= project
        .call(`GET /notifications/${id}`)
        .then(({ status }) => countIn(reads)(status), noAnswer)
        .finally(() => {
          reading = undefined;
        });
      await delay(1_000 / sendsOfOne); // the pace of the load, not a wait for an event
    }
  };
  const openOn = async () => {
    const follow = system.simulators.follow();
    let pushes = 0;
    while (!stopping) {
      for (const push of await eventually(follow)) {
        if (!wasAccepted(push)) continue; // a refused push may have no payload
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

/** The gateway died during the request, so the result is unknown. */
const noAnswer = () => {};

/** Reports an open like an app: retries until Herald accepts it. */
const openSurely = (api: string, id: string, body: { project_id: string; token: string }): Promise<HttpAnswer> =>
  eventually(
    async () => {
      const answer = await request(api, `PUT /notifications/${id}/open`, { body });
      if (answer.status !== 204) throw new Error(`an open was answered ${answer.status}: ${answer.text}`);
      return answer;
    },
    { timeoutMs: takenWithinMs },
  );
