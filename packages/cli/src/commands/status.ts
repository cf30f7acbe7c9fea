import type { Installation, SystemStatus } from "@herald/client";
import type { Command } from "commander";
import type { Add } from "../define.ts";
import { exitCodes } from "../failures.ts";
import { columnsFor, createTable } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { formatNumber, plain } from "../terminal/text.ts";
import { pauseInWords } from "./pauses.ts";

type Service = SystemStatus["services"][number];
type Row = { readonly service: string; readonly replica?: Service["replicas"][number] };
type Stream = SystemStatus["streams"][number];
type Durable = SystemStatus["durables"][number];
type Trouble = SystemStatus["providers"][number];
type Backlog = SystemStatus["backlogs"][number];

const services = columnsFor<Row>(
  "service",
  { title: "INSTANCE", value: ({ replica }) => replica?.instance },
  { title: "STATE", value: ({ replica }) => replica?.state ?? "not_answering" },
  { title: "VERSION", value: ({ replica }) => replica?.version },
  { title: "SINCE", value: ({ replica }) => replica?.started_at },
  { title: "WHY", value: ({ replica }) => replica?.failing.map(({ reason }) => reason).join("; ") },
);

const percent = ({ bytes, max_bytes }: Stream): string =>
  max_bytes > 0 ? `${((100 * bytes) / max_bytes).toFixed(1)} %` : "";
const streams = columnsFor<Stream>({ title: "STREAM", value: ({ name }) => name }, "messages", {
  title: "FULL",
  value: percent,
  right: true,
});

const durables = columnsFor<Durable>(
  { title: "DURABLE", value: ({ name }) => name },
  { title: "WAITING", value: ({ pending }) => pending, right: true },
  "in_progress",
);

const providers = columnsFor<Trouble>(
  "provider",
  "project_id",
  "state",
  { title: "REASON", value: ({ reason, host }) => [reason, host].filter(Boolean).join(" at ") },
  "since",
);

const backlogs = columnsFor<Backlog>(
  { title: "BACKLOG OF PROJECT", value: ({ project_id }) => project_id },
  { title: "SENDS", value: ({ sends }) => sends, right: true },
  "since",
);

const inWords = (status: SystemStatus & Installation, terminal: Terminal): string => {
  const rows = status.services.flatMap(({ name, replicas }): Row[] =>
    replicas.length === 0 ? [{ service: name }] : replicas.map((replica) => ({ service: name, replica })),
  );
  const busy = status.durables.filter(({ pending, in_progress }) => pending + in_progress > 0);
  const dead = status.dead_letters;
  return [
    ...(status.paused ? [`All sends are paused ${plain(pauseInWords(status.paused))}`, ""] : []),
    ...(status.broker.available ? [] : [`The broker is unavailable: ${status.broker.reason}`, ""]),
    ...createTable(services, terminal)(rows),
    "",
    ...createTable(streams, terminal)(status.streams),
    ...(busy.length === 0 ? [] : ["", ...createTable(durables, terminal)(busy)]),
    ...(status.providers.length === 0 ? [] : ["", ...createTable(providers, terminal)(status.providers)]),
    ...(status.backlogs.length === 0 ? [] : ["", ...createTable(backlogs, terminal)(status.backlogs)]),
    "",
    dead === null ? "Dead letters are not counted yet." : `Dead letters: ${formatNumber(dead)}`,
  ].join("\n");
};

export const addStatus = (program: Command, add: Add) =>
  add(
    program,
    "status",
    "Show services, streams, durables with work, providers that need attention, backlogs, dead letters, and a pause of all sends (admin token)",
    async ({ admin, result, terminal }) => {
      const herald = admin();
      const status = await herald.status();
      const isReady = status.broker.available && status.services.every(({ state }) => state === "ready");
      const { paused } = isReady ? await herald.installation.get() : {};
      await result({ ...status, paused }, (shown) => inWords(shown, terminal));
      return isReady ? exitCodes.ok : exitCodes.failed;
    },
  );
