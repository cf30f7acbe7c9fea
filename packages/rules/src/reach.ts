import {
  kindOfTarget,
  type Lane,
  type ProjectId,
  parseTarget,
  type SendV1,
  type Target,
  targetKey,
  targetsOfSend,
  type UserId,
  userKey,
} from "@herald/contracts";

/**
 * The most devices, and so the most targets, of a small send, which dispatch sends at once. Larger ones go through pages and queues, which
 * are fair to other projects and hold nothing in memory.
 */
export const maxSmallAudience = 100;

type Reach = {
  /** Whether a target of the kind promises few devices, so that its send may be small. */
  readonly small: boolean;
  readonly lane: Lane;
  /** Whether it may mean one person, as a pair or a condition may. */
  readonly personal: boolean;
};

/** What each kind of target promises of its devices. */
const reach: Readonly<Record<Target["kind"], Reach>> = {
  device: { small: true, lane: "direct", personal: true },
  token: { small: true, lane: "direct", personal: true },
  user: { small: true, lane: "direct", personal: true },
  pair: { small: true, lane: "broadcast", personal: true },
  condition: { small: false, lane: "broadcast", personal: true },
  topic: { small: false, lane: "broadcast", personal: false },
  all: { small: false, lane: "broadcast", personal: false },
};

const reachOf = (source: string): Reach | undefined => {
  const kind = kindOfTarget(source);
  return kind && reach[kind];
};

/** The lane of a notification: direct when every target is a device, a token or a user. One without targets has a list of recipients. */
export const laneOf = (targets: readonly string[]): Lane =>
  targets.length > 0 && targets.every((source) => reachOf(source)?.lane === "direct") ? "direct" : "broadcast";

/**
 * Whether a target may mean one person, as a pair or a condition may. Waiting pushes of such a notification do not follow a device to its
 * next user. Recipients are single devices or users.
 */
export const isPersonal = (targets: readonly string[]): boolean =>
  targets.length === 0 || targets.some((source) => reachOf(source)?.personal !== false);

/** Whether a target of the kind promises few devices. */
export const hasFewDevices = ({ kind }: Target): boolean => reach[kind].small;

/** Whether the targets promise few devices. If their send has many after all, dispatch expands it. */
export const allHaveFewDevices = (targets: readonly string[]): boolean =>
  targets.length > 0 &&
  targets.length <= maxSmallAudience &&
  targets.every((source) => reachOf(source)?.small === true);

/** The topics named by the targets, each once. */
export const topicsOf = (targets: readonly string[]): string[] => {
  const names = targets.flatMap((source) => {
    const parsed = parseTarget(source);
    return "target" in parsed && parsed.target.kind === "topic" ? [parsed.target.name] : [];
  });
  return [...new Set(names)];
};

/** The users named by the targets, each once. */
export const usersOf = (targets: readonly string[]): UserId[] => [
  ...new Set(
    targets.flatMap((source) => {
      const parsed = source.startsWith("user:") ? parseTarget(source) : undefined;
      return parsed && "target" in parsed && parsed.target.kind === "user" ? [parsed.target.id] : [];
    }),
  ),
];

/** A device or a push token as `<kind>:<id or token>`; undefined: another target. */
const deviceOrToken = (source: string): string | undefined => {
  const parsed = /^(?:dev|token)/.test(source) ? parseTarget(source) : undefined;
  if (!parsed || !("target" in parsed)) return undefined;
  const { target } = parsed;
  if (target.kind === "device") return `device:${target.id}`;
  return target.kind === "token" ? `token:${target.token}` : undefined;
};

/** The keys of the users, devices and push tokens among targets. */
export const personKeysOf = (projectId: ProjectId, targets: readonly string[]): string[] => [
  ...userKeysOf(projectId, targets),
  ...new Set(
    targets.flatMap((source) => {
      const one = deviceOrToken(source);
      return one === undefined ? [] : [targetKey(projectId, one)];
    }),
  ),
];

/** The keys of the users among targets. */
export const userKeysOf = (projectId: ProjectId, targets: readonly string[]): string[] =>
  usersOf(targets).map((userId) => userKey(projectId, userId));

/** Whether dispatch may send it without an expansion. */
export const isSmallSend = (send: SendV1): boolean =>
  // Registry reads values of devices, and uploaded recipients, page after page.
  send.sendAt === undefined &&
  send.local === undefined &&
  send.content.rollout === undefined &&
  send.personal?.devicePaths === undefined &&
  (send.personal === undefined || send.recipients !== undefined) &&
  allHaveFewDevices(targetsOfSend(send));
