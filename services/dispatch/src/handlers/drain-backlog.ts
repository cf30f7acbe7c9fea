import { defineHandler } from "@herald/bus";
import { DrainBacklogV1 } from "@herald/contracts";
import type { Backlog } from "../delivery/backlog.ts";
import { claimOf } from "./deliver-batch.ts";

/** Projects whose backlogs one process drains at a time: what they send passes a gate, so each costs little. */
const maxProjects = 1_000;

/** Sends what waits of a project. The message lives as long as the backlog, so another process goes on with it after a crash. */
export const drainBacklog = (backlog: Pick<Backlog, "drain">) =>
  defineHandler({
    durable: "dispatch-drain", // renaming a durable replays its stream
    message: DrainBacklogV1,
    concurrency: maxProjects,
    handle: ({ data, signal, ...message }) => backlog.drain(data.projectId, claimOf(message), signal),
  });
