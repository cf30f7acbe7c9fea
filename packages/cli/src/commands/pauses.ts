import type { Installation, Pause, ProjectPause } from "@herald/client";
import type { Command } from "commander";
import type { Entries } from "../context.ts";
import { type Add, option } from "../define.ts";

/** Who paused it, when, until when and why. */
export const pauseInWords = ({ at, by, reason, until }: Pause & Partial<ProjectPause>): string =>
  [
    `by ${by ? (by.name ?? by.id) : "its rollout"} at ${at}`,
    until !== undefined && `until ${until}`,
    reason !== undefined && `because: ${reason}`,
  ]
    .filter(Boolean)
    .join(", ");

export type PauseChoice = { readonly reason?: string; readonly until?: string };

export const reasonOption = option("--reason <text>", "why, for those who see that it is paused");
export const pauseOptions = [
  reasonOption,
  option("--until <time>", "when it resumes by itself, such as 2030-01-31T10:00:00+01:00"),
];

const entries = ({ paused }: Installation): Entries => [["paused", paused ? pauseInWords(paused) : "no"]];

export const addInstallation = (group: Command, add: Add) => {
  add(group, "get", "Show whether the sends of all projects are paused", ({ admin, record }) =>
    record(admin().installation.get(), entries),
  );
  add<PauseChoice>(group, {
    usage: "pause",
    does: "Send nothing of any project until it is resumed",
    options: pauseOptions,
    examples: [["installation pause --reason 'a wrong push is on its way'", "stop everything at once"]],
    run: ({ admin, record }, _, pause) => record(admin().installation.pause(pause), entries),
  });
  add(group, "resume", "Send what waits; pauses of single projects stay", ({ admin, record }) =>
    record(admin().installation.resume(), entries),
  );
};
