import type { DeadLetter, Replay } from "@herald/client";
import type { Command } from "commander";
import type { Context, ListChoice } from "../context.ts";
import { type Add, listOptions, option } from "../define.ts";
import { exitCodes, UsageError } from "../failures.ts";
import { columnsFor, createTable, titled } from "../terminal/table.ts";

const columns = columnsFor<DeadLetter>(
  "id",
  { title: "DURABLE", value: ({ durable }) => durable, whole: true },
  "reason",
  { title: "REPLAYS", value: ({ replays }) => replays ?? 0, right: true },
  "died_at",
  "detail",
);
const replayColumns = columnsFor<Replay>("id", "status", "detail");

const showReplays = async ({ result, terminal }: Context, replays: readonly Replay[]): Promise<number> => {
  await result(replays, () =>
    replays.length === 0
      ? "There are no dead letters to replay."
      : createTable(replayColumns, terminal)(replays).join("\n"),
  );
  return replays.every(({ status }) => status === "replayed") ? exitCodes.ok : exitCodes.failed;
};

export const addDeadLetters = (group: Command, add: Add) => {
  add<ListChoice & { durable?: string }>(group, {
    usage: "list",
    does: "List dead letters, oldest first",
    options: [option("--durable <name>", "only those of this handler"), ...listOptions],
    run: ({ admin, rows }, _, { durable, ...choice }) => rows(admin().deadLetters.list({ durable }), columns, choice),
  });
  add(group, "get <id>", "Show a dead letter without its content", ({ admin, record }, [id = ""]) =>
    record(admin().deadLetters.get(id), (letter) => [
      ...titled(letter, "id", "durable", "message", "project_id", "notification_id", "subject", "reason", "detail"),
      ...titled(letter, "deliveries", "died_at", "replayed_at", "replays", "replay_of"),
    ]),
  );
  add<{ durable?: string }>(group, {
    usage: "replay [ids...]",
    does: "Publish dead letters again",
    options: [option("--durable <name>", "all of this handler that were never replayed")],
    examples: [
      ["dead-letters replay 17 18", "these two"],
      ["dead-letters replay --durable dispatch-deliver", "all of a handler, after fixing it"],
    ],
    run: async (context, ids, { durable }) => {
      const { terminal } = context;
      const { deadLetters } = context.admin();
      if ((ids.length === 0) === (durable === undefined)) throw new UsageError("Give either ids or --durable.");
      const replays: Replay[] = [];
      if (durable === undefined) replays.push(...(await deadLetters.replayMany(ids)).replays);
      for (let after: string | null | undefined; durable !== undefined && after !== null; ) {
        const batch = await deadLetters.replayDurable(durable, after);
        replays.push(...batch.replays);
        after = batch.next;
        context.onStop("Stopped. Dead letters that were already replayed stay replayed.");
        terminal.progress(`${replays.length} replayed…`);
      }
      return showReplays(context, replays);
    },
  });
};
