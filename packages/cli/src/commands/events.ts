import type { EventType } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import { type Add, numberOption, option, repeatable } from "../define.ts";
import { show, toJson } from "../terminal/text.ts";

type Options = {
  readonly type?: EventType[];
  readonly since?: string;
  readonly after?: string;
  readonly count?: number;
};

/** The data of an event without the fields that all events share. */
const dataInWords = ({ project_id: _, at: __, ...data }: Readonly<Record<string, unknown>>): string =>
  Object.entries(data)
    .map(([name, value]) => `${name}=${typeof value === "number" ? value : show(value)}`)
    .join(" ");

export const addEvents = (group: Command, add: Add) =>
  add<Options>(group, {
    usage: "follow",
    does: "Print events as they happen; with --json, one per line",
    options: [
      repeatable("--type <type>", "only events of this type; repeatable", knownValues.eventType),
      option("--since <time>", "start time, at most 30 days ago"),
      option("--after <position>", "resume after this position"),
      numberOption("--count <count>", "stop after this many"),
    ],
    examples: [
      ["events follow --type io.herald.notification.opened.v1", "every open"],
      ["events follow --since 2030-01-31T09:00:00Z --json | jq .data", "events since a time, for a program"],
    ],
    run: async (context, _, { type: types, since, after: lastEventId, count = Number.POSITIVE_INFINITY }) => {
      const { signal, terminal, json } = context;
      let last = "";
      let seen = 0;
      context.onInterrupt("Stopped following. Herald keeps events for 30 days.");
      for await (const event of context.herald().events.follow({ types, since, lastEventId, signal })) {
        last = event.position;
        context.onStop(`Stopped following. \`herald events follow --after ${last}\` resumes here.`);
        terminal.print(
          json
            ? toJson(event)
            : `${terminal.paint("dim", event.timestamp)} ${terminal.paint("cyan", show(event.type))} ${dataInWords(event.data)}`,
        );
        if (++seen >= count) return;
      }
    },
  });
