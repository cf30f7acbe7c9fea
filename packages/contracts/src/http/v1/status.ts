import { z } from "zod";
import { ProjectId } from "../../ids.ts";
import { named } from "../../named.ts";
import { Provider } from "../../platforms.ts";

const count = z.number().int().min(0);
const time = z.iso.datetime();
const milliseconds = z.number().min(0);

export const ServiceName = z.enum(["gateway", "registry", "dispatch", "analytics"]).meta({ id: "ServiceName" });
export type ServiceName = z.infer<typeof ServiceName>;

const FailingCheck = z.object({
  check: z.string().meta({ description: "Such as `bus`, `database`, `consumers`", examples: ["database"] }),
  since: time,
  reason: z.string().meta({ examples: ["the database is unavailable"] }),
});

const StreamStatus = z.object({
  name: z.string().meta({ examples: ["PUSH_CMD"] }),
  messages: count,
  bytes: count,
  max_bytes: z
    .number()
    .int()
    .meta({ description: "-1: unlimited", examples: [4_294_967_296] }),
  measured_at: time,
});

const DurableStatus = z.object({
  name: z.string().meta({ examples: ["dispatch-send-groups"] }),
  pending: count.meta({ description: "Messages that wait for a process" }),
  in_progress: count.meta({ description: "Messages that a process took and has not settled" }),
  measured_at: time,
});

const ProviderTrouble = z.object({
  project_id: ProjectId,
  provider: Provider,
  state: z.enum(["paused", "unreachable"]).meta({
    description:
      "`paused`: the provider refuses the credential; `unreachable`: a server of the provider cannot be reached, and pushes to it wait",
  }),
  reason: z.string().meta({ examples: ["InvalidProviderToken"] }),
  host: z.string().optional(),
  since: time,
});

const Backlog = z.object({
  project_id: ProjectId,
  sends: count.meta({
    description: "Sends to few devices that wait for the project's turn; lists do not show them yet",
  }),
  since: time.meta({ description: "When the oldest of them was accepted" }),
});

const KeyIds = z.record(z.string(), z.array(z.string())).meta({
  description:
    "The ids of its keys, by variable. The first one encrypts or signs, the others only read: rotate when every replica lists the new one",
  examples: [{ HERALD_OPEN_KEYS: ["k2", "k1"] }],
});

const ProxyAddress = z.string().meta({
  description: "Host and port of `HTTPS_PROXY`, if it reaches servers elsewhere through a proxy",
  examples: ["proxy.example.com:3128"],
});

/** A process's report on itself, written to the bucket `push_status` every few seconds. */
export const StatusReport = z.object({
  service: ServiceName,
  instance: z.string(),
  version: z.string(),
  startedAt: time,
  at: time,
  failing: z.array(FailingCheck),
  keys: KeyIds.optional(),
  proxy: ProxyAddress.optional(),
  /** The time to store the last report; absent before the first. */
  brokerMs: milliseconds.optional(),
  databaseMs: milliseconds.optional(),
  streams: z.array(StreamStatus).default([]),
  durables: z.array(DurableStatus).default([]),
  /** Only from dispatch; at most 100. */
  providers: z.array(ProviderTrouble).optional(),
  /** Only from dispatch; at most 100. */
  backlogs: z.array(Backlog).optional(),
});
export type StatusReport = z.infer<typeof StatusReport>;

const ReplicaStatus = z.object({
  instance: z.string().meta({ description: "Host and process", examples: ["dispatch-6f7c9-1"] }),
  version: z.string().meta({ examples: ["0.1.0"] }),
  state: z.enum(["ready", "not_ready", "not_answering"]).meta({
    description: "`not_answering`: it ended without a stop, hangs, or has no connection to the bus",
  }),
  started_at: time,
  last_seen_at: time,
  failing: z.array(FailingCheck).meta({ description: "Why it is not ready; empty when it is" }),
  keys: KeyIds.optional(),
  proxy: ProxyAddress.optional(),
  broker_ms: milliseconds.optional().meta({ description: "How long the broker took to store its last report" }),
  database_ms: milliseconds.optional().meta({ description: "How long the database took to answer its last ping" }),
});

export const ServiceStatus = named("ServiceStatus", {
  name: ServiceName,
  state: z.enum(["ready", "not_ready", "not_answering"]).meta({
    description: "`ready` while one replica is; `not_answering`: no replica reports",
  }),
  replicas: z.array(ReplicaStatus),
});
export type ServiceStatus = z.infer<typeof ServiceStatus>;

/** The answer to `GET /admin/v1/status`. */
export const SystemStatus = named("SystemStatus", {
  at: time,
  broker: z
    .object({ available: z.boolean(), reason: z.string().optional() })
    .meta({ description: "The broker as the gateway sees it. While it is unavailable no service can report" }),
  services: z.array(ServiceStatus).meta({ description: "All four, also those that do not report" }),
  streams: z.array(StreamStatus).meta({ description: "As their services measured them, within the last 15 s" }),
  durables: z.array(DurableStatus),
  providers: z
    .array(ProviderTrouble)
    .meta({ description: "Providers that need a person, of all projects, at most 100 of each state" }),
  backlogs: z
    .array(Backlog)
    .meta({ description: "Projects that send more than their share, at most 100, the longest waiting first" }),
  dead_letters: count.nullable().meta({ description: "Kept for 30 days, replayed or not; null: not measured yet" }),
});
export type SystemStatus = z.infer<typeof SystemStatus>;
