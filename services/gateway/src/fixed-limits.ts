import { activityLimits } from "@herald/contracts";

/** The limits that no variable sets: each fits every installation, or follows from another one. */
export const fixedLimits = {
  /** Open connections of one address. The last are for addresses that have none. Not applied behind proxies. */
  addressConnections: 500,
  /**
   * Bytes of request bodies being received and of responses that clients have not read yet: room for sixty of the largest bodies. Together
   * with the connections and the gateway itself this stays within 512 MiB.
   */
  bodyBytes: 64 * 1_048_576,
  /** The same for one address. Behind a proxy each client counts by its own address. */
  addressBodyBytes: 16 * 1_048_576,
  /** Open event streams of one project: enough for a few services with replicas, and for people who watch. */
  projectStreams: 20,
  /** Running exports. Each has up to two pages of at most 4 MiB in memory. */
  exports: 8,
  /** Running exports of one project. The last places are for projects that have none. */
  projectExports: 2,
  /**
   * Bytes by which uploads of recipients remember their targets, and those of one project: two files of two million lines, and one with
   * a part of another.
   */
  uploadBytes: 64 * 1_048_576,
  projectUploadBytes: 32 * 1_048_576,
  /** Dry runs and previews of a project in a minute. A dry run reads every device of its audience, so one a second is enough. */
  dryRuns: 60,
  /** Bytes of a project's waiting notifications: an eighth of the queue's 4 GiB. */
  queuedBytes: 512 * 1_048_576,
  /** Live Activities of a project that have not ended, and bytes of its records. */
  activeActivities: activityLimits.active,
  activityBytes: activityLimits.projectBytes,
} as const;

/** Values that a test may replace. */
export type FixedLimits = Readonly<Record<keyof typeof fixedLimits, number>>;

/** The limits of requests in one window that follow from the limit of a project. */
export const requestLimits = (project: number) => ({
  project,
  /** One token: a program in a loop leaves room for the project's other tokens. Also one operator. */
  token: Math.ceil(project / 2),
  /** The credential of one device: by default 100 in 10 seconds, of which an app sends a few when it starts. */
  device: Math.ceil(project / 100),
});
