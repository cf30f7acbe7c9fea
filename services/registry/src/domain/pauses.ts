import { type Author, installation, type ProjectId, type ProjectPause, type StoredPause } from "@herald/contracts";

/** A pause of the sends of a project, or of all projects. */
export type PauseEntry = {
  readonly at: Date;
  readonly by: Author;
  readonly reason?: string | undefined;
  /** It ends then by itself. */
  readonly until?: Date | undefined;
};

/**
 * The row of all projects, beside theirs: replicated in the same way. It is stored while all sends are paused, and has nothing but the pause.
 * It sorts before the ids of projects.
 */
export const installationRow = installation as string as ProjectId;

/** Its end has come, whether or not the database still has it. */
export const hasEnded = ({ until }: PauseEntry, now: Date): boolean => until !== undefined && until <= now;

export const storedPause = ({ at, by, reason, until }: PauseEntry): StoredPause => ({
  at: at.toISOString(),
  by,
  ...(reason !== undefined && { reason }),
  ...(until && { until: until.toISOString() }),
});

/** The pause of a project: its own, or else that of all projects. */
export const pauseView = (own: PauseEntry | undefined, ofAll: PauseEntry | undefined): { paused?: ProjectPause } => {
  if (own) return { paused: { ...storedPause(own), of: "project" } };
  return ofAll ? { paused: { ...storedPause(ofAll), of: "installation" } } : {};
};
