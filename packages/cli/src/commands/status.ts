import type { SystemStatus } from "@herald/client";
import type { Command } from "commander";
import type { Add } from "../define.ts";
import { exitCodes } from "../exit-codes.ts";
import { createTable } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { count } from "../terminal/text.ts";

type Service = SystemStatus["services"][number];
type Row = { readonly service: string; readonly replica?: Service["replicas"][number] };
type Stream = SystemStatus["streams"][number];
type Durable = SystemStatus["durables"][number];
type Trouble = SystemStatus["providers"][number];

const services = [
  { title: "SERVICE", value: ({ service }: Row) => service },
  { title: "INSTANCE", value: ({ replica }: Row) => replica?.instance },
  { title: "STATE", value: ({ replica }: Row) => replica?.state ?? "not_answering" },
  { title: "VERSION", value: ({ replica }: Row) => replica?.version },
  { title: "SINCE", value: ({ replica }: Row) => replica?.started_at },
  { title: "WHY", value: ({ replica }: Row) => replica?.failing.map(({ reason }) => reason).join("; ") },
];

const percent = ({ bytes, max_bytes }: Stream): string =>
  max_bytes > 0 ? `${((100 * bytes) / max_bytes).toFixed(1)} %` : "";
const streams = [
  { title: "STREAM", value: ({ name }: Stream) => name },
  { title: "MESSAGES", value: ({ messages }: Stream) => messages, right: true },
  { title: "FULL", value: percent, right: true },
];

const durables = [
  { title: "DURABLE", value: ({ name }: Durable) => name },
  { title: "WAITING", value: ({ pending }: Durable) => pending, right: true },
  { title: "IN PROGRESS", value: ({ in_progress }: Durable) => in_progress, right: true },
];

const providers = [
  { title: "PROVIDER", value: ({ provider }: Trouble) => provider },
  { title: "PROJECT", value: ({ project_id }: Trouble) => project_id },
  { title: "STATE", value: ({ state }: Trouble) => state },
  { title: "REASON", value: ({ reason, host }: Trouble) => [reason, host].filter(Boolean).join(" at ") },
  { title: "SINCE", value: ({ since }: Trouble) => since },
];

const inWords = (status: SystemStatus, terminal: Terminal): string => {
  const rows = status.services.flatMap(({ name, replicas }): Row[] =>
    replicas.length === 0 ? [{ service: name }] : replicas.map((replica) => ({ service: name, replica })),
  );
  const busy = status.durables.filter(({ pending, in_progress }) => pending + in_progress > 0);
  const dead = status.dead_letters;
  return [
    ...(status.broker.available ? [] : [`The broker is unavailable: ${status.broker.reason}`, ""]),
    ...createTable(services, terminal)(rows),
    "",
    ...createTable(streams, terminal)(status.streams),
    ...(busy.length === 0 ? [] : ["", ...createTable(durables, terminal)(busy)]),
    ...(status.providers.length === 0 ? [] : ["", ...createTable(providers, terminal)(status.providers)]),
    "",
    dead === null ? "Dead letters are not counted yet." : `Dead letters: ${count(dead)}`,
  ].join("\n");
};

/** Whether a service has no replica that is ready. */
const isDown = ({ state }: Service): boolean => state !== "ready";

export const addStatus = (program: Command, add: Add) =>
  add(program, {
    usage: "status",
    does: "Show services, streams, durables with work, providers that need a person, and dead letters (admin token)",
    run: async ({ admin, signal, result, terminal }) => {
      const status = await admin().status({ signal });
      result(status, () => inWords(status, terminal));
      return status.broker.available && !status.services.some(isDown) ? exitCodes.ok : exitCodes.failed;
    },
  });
