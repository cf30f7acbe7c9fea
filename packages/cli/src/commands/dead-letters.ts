import type { DeadLetter, Replay } from "@herald/client";
import type { Command } from "commander";
import type { Context, ListChoice } from "../context.ts";
import { type Add, listOptions, option } from "../define.ts";
import { exitCodes } from "../exit-codes.ts";
import { UsageError } from "../failures.ts";
import { createTable } from "../terminal/table.ts";

const columns = [
  { title: "ID", value: ({ id }: DeadLetter) => id },
  { title: "DURABLE", value: ({ durable }: DeadLetter) => durable, whole: true },
  { title: "REASON", value: ({ reason }: DeadLetter) => reason },
  { title: "REPLAYS", value: ({ replays }: DeadLetter) => replays ?? 0, right: true },
  { title: "DIED", value: ({ died_at }: DeadLetter) => died_at },
  { title: "DETAIL", value: ({ detail }: DeadLetter) => detail },
];
const replayColumns = [
  { title: "ID", value: ({ id }: Replay) => id },
  { title: "STATUS", value: ({ status }: Replay) => status },
  { title: "DETAIL", value: ({ detail }: Replay) => detail },
];

const showReplays = ({ result, terminal }: Context, replays: readonly Replay[]): number => {
  result(replays, () =>
    replays.length === 0 ? "There is none to replay." : createTable(replayColumns, terminal)(replays).join("\n"),
  );
  return replays.every(({ status }) => status === "replayed") ? exitCodes.ok : exitCodes.failed;
};

export const addDeadLetters = (group: Command, add: Add) => {
  add<ListChoice & { durable?: string }>(group, {
    usage: "list",
    does: "List dead letters, oldest first",
    options: [option("--durable <name>", "only those of this handler"), ...listOptions],
    run: ({ admin, signal, rows }, _, { durable, ...choice }) =>
      rows(admin().deadLetters.list({ durable, signal }), columns, choice),
  });
  add(group, {
    usage: "get <id>",
    does: "Show a dead letter without its content",
    run: async ({ admin, signal, record }, [id = ""]) => {
      const letter = await admin().deadLetters.get(id, { signal });
      record(letter, [
        ["id", letter.id],
        ["durable", letter.durable],
        ["message", letter.message],
        ["project", letter.project_id],
        ["notification", letter.notification_id],
        ["subject", letter.subject],
        ["reason", letter.reason],
        ["detail", letter.detail],
        ["deliveries", letter.deliveries],
        ["died", letter.died_at],
        ["replayed", letter.replayed_at],
        ["replays", letter.replays],
        ["replay of", letter.replay_of],
      ]);
    },
  });
  add<{ durable?: string }>(group, {
    usage: "replay [ids...]",
    does: "Publish dead letters again",
    options: [option("--durable <name>", "all of this handler that were never replayed")],
    examples: [
      ["dead-letters replay 17 18", "these two"],
      ["dead-letters replay --durable dispatch-deliver", "all of a handler, after fixing it"],
    ],
    run: async (context, ids, { durable }) => {
      const { signal, terminal } = context;
      const { deadLetters } = context.admin();
      if ((ids.length === 0) === (durable === undefined)) throw new UsageError("Give either ids or --durable.");
      const replays: Replay[] = [];
      if (durable === undefined) replays.push(...(await deadLetters.replayMany(ids, { signal })).replays);
      for (let after: string | null | undefined; durable !== undefined && after !== null; ) {
        const batch = await deadLetters.replayDurable(durable, after, { signal });
        replays.push(...batch.replays);
        after = batch.next;
        context.onStop("Stopped. Dead letters that were already replayed stay replayed.");
        terminal.progress(`${replays.length} replayed…`);
      }
      return showReplays(context, replays);
    },
  });
};
