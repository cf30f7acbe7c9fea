import {
  NewNotification,
  type NotificationId,
  newNotificationId,
  type ProjectId,
  type SendV1,
  type SentNotification,
} from "@herald/contracts";
import { createYieldIfDue, type Fault, HeraldError, messageOf, parseBody } from "@herald/kit";
import type { RouteDeps } from "../deps.ts";
import type { Attempt } from "../idempotency/idempotency.ts";
import { acceptNotification, rulesFor, sendCommand } from "./accept-notification.ts";
import { packIds, unpackIds } from "./accepted-ids.ts";
import type { SendOperation, Validated } from "./send-operation.ts";

/** Of all notifications of a batch together, as of any other request. */
const maxProblems = 100;

const nameOf = (at: number): string => `notifications.${at}`;

type Accepted = {
  readonly status: 202;
  readonly body: { readonly data: SentNotification[] };
  readonly headers?: Readonly<Record<string, string>>;
};
type ValidatedOne = { readonly command: SendV1 } | { readonly faults: readonly Fault[] };

/** Throws validation-failed. Its problems are about `name`, and `most` of them are described. */
const parseOne = (sent: unknown, name: string, most: number) => {
  const notification = parseBody(NewNotification, sent, { prefix: name, most });
  if (notification.dry_run !== true) return notification;
  throw new HeraldError(
    "validation-failed",
    `${name}.dry_run: is not accepted in a batch; try the notification with POST /api/v1/notifications`,
  );
};

/** A problem of a notification as one of the batch. */
const inBatch = (fault: Fault, at: string): Fault => {
  if (fault.name.startsWith(at)) return fault;
  if (/^notification(?:\.|$)/.test(fault.name)) return { ...fault, name: fault.name.replace("notification", at) };
  return { ...fault, name: at, detail: messageOf(fault) };
};

/** Problems that no schema sees come in full: those that are too many are counted, as the schema's are already. */
const atMost = (most: number, faults: readonly Fault[]): readonly Fault[] => {
  const more = faults.length - most;
  if (more <= 0 || faults.at(-1)?.code === "more-problems") return faults;
  return [...faults.slice(0, most), { name: "", detail: `${more} more problems like these`, code: "more-problems" }];
};

/** Judges each notification by itself. A long computation: it gives way to other requests. */
const validateEach = async (
  notifications: readonly unknown[],
  accept: (notification: ReturnType<typeof parseOne>) => SendV1,
): Promise<ValidatedOne[]> => {
  const yieldIfDue = createYieldIfDue();
  const validated: ValidatedOne[] = [];
  let left = maxProblems;
  for (const [at, sent] of notifications.entries()) {
    const name = nameOf(at);
    try {
      validated.push({ command: accept(parseOne(sent, name, left)) });
    } catch (error) {
      if (!(error instanceof HeraldError && error.code === "validation-failed")) throw error;
      validated.push({ faults: atMost(left, error.faults).map((fault) => inBatch(fault, name)) });
      left = Math.max(0, left - error.faults.length);
    }
    await yieldIfDue();
  }
  return validated;
};

const failedBefore = (at: number): string =>
  `${nameOf(at)}: was not accepted when this request was made first; send it again under another Idempotency-Key`;

/** A request with several notifications: each is accepted or refused by itself. */
export const sendBatch = (
  deps: RouteDeps,
  projectId: ProjectId,
  notifications: readonly unknown[],
): SendOperation<Accepted> => {
  const validate = (at: Date): Promise<ValidatedOne[]> => {
    const rules = rulesFor(deps, projectId);
    const id = newNotificationId(at);
    return validateEach(notifications, (notification) =>
      acceptNotification({ projectId, id, at, notification, ...rules }),
    );
  };
  /** Those of the first try, by their place in the request. */
  const idsOf = ({ batch }: Attempt) => unpackIds(batch ?? { groups: [] }, notifications.length);
  const reply = (data: SentNotification[]): Accepted => ({ status: 202, body: { data } });

  return {
    validate: async (at): Promise<Validated<Accepted>> => {
      const validated = await validate(at);
      const commands = validated.flatMap((one) => ("command" in one ? [one.command] : []));
      if (commands.length === 0)
        throw new HeraldError(
          "validation-failed",
          validated.flatMap((one) => ("faults" in one ? one.faults : [])),
        );
      /** Ids by place, of which there are fewer than commands where a quota was used up. */
      const placed = (ids: readonly NotificationId[]) => {
        const next = ids.values();
        return validated.map((one) => ("command" in one ? next.next().value : undefined));
      };
      return {
        commands,
        batchOf: (ids) => packIds(placed(ids)),
        reply: (accepted, refusal) => {
          const ids = placed(accepted.map(({ notificationId }) => notificationId));
          return reply(
            validated.map((one, place) => {
              const id = ids[place];
              if (id !== undefined) return { id };
              if ("faults" in one) return { errors: one.faults.map(messageOf) };
              return { errors: [`${nameOf(place)}: ${refusal?.message ?? "was not accepted"}`] };
            }),
          );
        },
      };
    },
    // Without the checks: what was accepted once stays so.
    rebuildCommands: async (attempt) => {
      const yieldIfDue = createYieldIfDue();
      const commands: SendV1[] = [];
      for (const [at, id] of idsOf(attempt).entries()) {
        if (id === undefined) continue;
        const notification = parseOne(notifications[at], nameOf(at), 1);
        commands.push(sendCommand({ projectId, id, at: attempt.at, notification }));
        await yieldIfDue();
      }
      return commands;
    },
    rebuildResponse: async (attempt) => {
      const ids = idsOf(attempt);
      const validated = ids.includes(undefined) ? await validate(attempt.at) : [];
      return reply(
        ids.map((id, at) => {
          if (id !== undefined) return { id };
          const one = validated[at];
          return { errors: one && "faults" in one ? one.faults.map(messageOf) : [failedBefore(at)] };
        }),
      );
    },
  };
};
