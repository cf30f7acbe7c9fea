import { NewNotification, type NotificationId, newNotificationId, type SentNotification } from "@herald/contracts";
import { createYieldIfDue, type Fault, HeraldError, hasCode, messageOf, parseBody } from "@herald/kit";
import type { CallerOf } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import type { Attempt } from "../idempotency/idempotency.ts";
import {
  acceptNotification,
  type ParsedSend,
  parsedSend,
  type RulesDeps,
  renderSend,
  rulesFor,
  sendCommand,
} from "./accept-notification.ts";
import { packAcceptedIds, unpackIds } from "./accepted-ids.ts";
import { propose } from "./propose.ts";
import type { SendAnswer, SendOperation, Validated } from "./send-operation.ts";

/** The maximum for a whole batch, as for any other request. */
const maxProblems = 100;

const nameOf = (at: number): string => `notifications.${at}`;

type Accepted = SendAnswer & { readonly body: { readonly data: SentNotification[] } };
type ValidatedOne = { readonly send: ParsedSend } | { readonly faults: readonly Fault[] };

/** Throws validation-failed with at most `maxProblems` problems, named after `name`. */
const parseOne = (sent: unknown, name: string, maxProblems: number) => {
  const notification = parseBody(NewNotification, sent, { prefix: name, max: maxProblems });
  const alone = ["recipients", "rollout", "dry_run"] as const;
  const refused = alone.find((field) => notification[field] !== undefined && notification[field] !== false);
  if (refused === undefined) return notification;
  throw new HeraldError(
    "validation-failed",
    `${name}.${refused}: is not accepted in a batch; use POST /api/v1/notifications`,
  );
};

/** Renames a notification's problem to its name in the batch. */
const inBatch = (fault: Fault, at: string): Fault => {
  if (fault.name.startsWith(at)) return fault;
  if (/^notification(?:\.|$)/.test(fault.name)) return { ...fault, name: fault.name.replace("notification", at) };
  return { ...fault, name: at, detail: messageOf(fault) };
};

/** Limits the problems found by checks beyond the schema, and counts the rest; the schema's problems are already limited. */
const atMost = (max: number, faults: readonly Fault[]): readonly Fault[] => {
  const more = faults.length - max;
  if (more <= 0 || faults.at(-1)?.code === "more-problems") return faults;
  return [...faults.slice(0, max), { name: "", detail: `${more} more problems like these`, code: "more-problems" }];
};

/** Validates each notification separately. Yields to other requests, because a batch takes long. */
const validateEach = async (
  notifications: readonly unknown[],
  accept: (notification: ReturnType<typeof parseOne>) => Promise<ParsedSend>,
): Promise<ValidatedOne[]> => {
  const yieldIfDue = createYieldIfDue();
  const validated: ValidatedOne[] = [];
  let left = maxProblems;
  for (const [at, sent] of notifications.entries()) {
    const name = nameOf(at);
    try {
      validated.push({ send: await accept(parseOne(sent, name, left)) });
    } catch (error) {
      if (!hasCode(error, "validation-failed", "internal")) throw error;
      validated.push({ faults: atMost(left, error.faults).map((fault) => inBatch(fault, name)) });
      left = Math.max(0, left - error.faults.length);
    }
    await yieldIfDue();
  }
  return validated;
};

const failedBefore = (at: number): string =>
  `${nameOf(at)}: was refused when this request was first made; send it again with another Idempotency-Key`;

/** A request with several notifications: each is accepted or refused on its own. */
export const sendBatch = (
  deps: RulesDeps & Pick<RouteDeps, "sendRequest" | "sends" | "templates">,
  caller: CallerOf<"project">,
  notifications: readonly unknown[],
): SendOperation<Accepted> => {
  const { projectId } = caller;
  const validate = (at: Date): Promise<ValidatedOne[]> => {
    const rules = rulesFor(deps, projectId);
    const id = newNotificationId(at);
    return validateEach(notifications, async (sent) => {
      const rendered = await renderSend(deps, projectId, sent);
      const send = deps.sends.check(acceptNotification({ projectId, id, at, ...rendered, ...rules }));
      return send.small ? send : propose(deps, caller, send);
    });
  };
  /** The ids of the first attempt, by position in the request. */
  const idsOf = ({ batch }: Pick<Attempt, "batch">) => unpackIds(batch ?? { groups: [] }, notifications.length);
  const reply = (data: SentNotification[]): Accepted => ({ status: 202, body: { data } });

  return {
    validate: async (at): Promise<Validated<Accepted>> => {
      const validated = await validate(at);
      const sends = validated.flatMap((one) => ("send" in one ? [one.send] : []));
      if (sends.length === 0)
        throw new HeraldError(
          "validation-failed",
          validated.flatMap((one) => ("faults" in one ? one.faults : [])),
        );
      /** Ids by position. There are fewer ids than sends when a quota is used up. */
      const placed = (ids: readonly NotificationId[]) => {
        const next = ids.values();
        return validated.map((one) => ("send" in one ? next.next().value : undefined));
      };
      return {
        sends,
        batchOf: (ids) => packAcceptedIds(placed(ids)),
        reply: (accepted, refusal) => {
          const ids = placed(accepted);
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
    // Skips the checks: an accepted notification stays accepted.
    rebuildSends: async (attempt) => {
      const yieldIfDue = createYieldIfDue();
      const sends: ParsedSend[] = [];
      for (const [at, id] of idsOf(attempt).entries()) {
        if (id === undefined) continue;
        const sent = parseOne(notifications[at], nameOf(at), 1);
        const rendered = await renderSend(deps, projectId, sent);
        const send = parsedSend(sendCommand({ projectId, id, at: attempt.at, ...rendered }));
        sends.push(send.small ? send : await propose(deps, caller, send));
        await yieldIfDue();
      }
      return sends;
    },
    idsOf: (attempt) => idsOf(attempt).filter((id) => id !== undefined),
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
