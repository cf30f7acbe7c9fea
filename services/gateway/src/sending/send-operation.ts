import type { IdempotencyRecord, NotificationId, ProjectId, SendV1 } from "@herald/contracts";
import type { RouteDeps } from "../deps.ts";
import type { Attempt, FirstTry, Work } from "../idempotency/idempotency.ts";
import { chargeSends } from "./charge-sends.ts";

type Answer = { readonly status: 202; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> };

/** A validated request. */
export type Validated<Reply extends Answer> = {
  /** The valid sends, with provisional ids; at least one. */
  readonly commands: readonly SendV1[];
  /** The response when the first commands are accepted and the others exceed a quota. */
  readonly reply: (accepted: readonly SendV1[], refusal: Error | undefined) => Reply;
  /** Packs the ids of a request with several notifications for its record. */
  readonly batchOf?: (ids: readonly NotificationId[]) => IdempotencyRecord["batch"];
};

export type SendOperation<Reply extends Answer> = {
  /** Throws validation-failed when nothing can be sent. */
  readonly validate: (at: Date) => Promise<Validated<Reply>>;
  /** The commands that an earlier attempt accepted. */
  readonly rebuildCommands: (attempt: Attempt) => Promise<readonly SendV1[]>;
  readonly rebuildResponse: (attempt: Attempt) => Reply | Promise<Reply>;
};

/** Performs a request that sends notifications: a first attempt is grouped with others, a repeat uses the ids of the first. */
export const sendOperation = <Reply extends Answer>(
  deps: RouteDeps,
  projectId: ProjectId,
  { validate, rebuildCommands, rebuildResponse }: SendOperation<Reply>,
): Work<Reply> => {
  const measured = (commands: readonly SendV1[]) =>
    commands.map((command) => ({ command, bytes: Buffer.byteLength(JSON.stringify(command)) }));
  const charge = (sends: ReturnType<typeof measured>) =>
    chargeSends(
      deps,
      projectId,
      sends.map(({ bytes }) => bytes),
    );
  return {
    performFirst: async ({ at, key }: FirstTry) => {
      const { commands, reply, batchOf } = await validate(at);
      const sends = measured(commands);
      const { granted, refusal, refund } = await charge(sends);
      if (granted === 0) throw refusal;
      const sendKey = key && { request: key, at, ...(batchOf ? { batchOf } : {}) };
      let accepted: readonly SendV1[] | undefined;
      try {
        accepted = await deps.sends.accept(sends.slice(0, granted), sendKey);
      } finally {
        // A replay is not sent again, so it does not count.
        if (accepted === undefined) await refund();
      }
      return accepted && reply(accepted, refusal);
    },
    perform: async (attempt) => {
      const sends = measured(await rebuildCommands(attempt));
      const { granted, refusal, refund } = await charge(sends);
      try {
        // All were accepted before, so all must fit.
        if (granted < sends.length) throw refusal;
        await deps.sends.repeat(sends);
      } catch (error) {
        await refund();
        throw error;
      }
      return rebuildResponse(attempt);
    },
    rebuildResponse,
  };
};
