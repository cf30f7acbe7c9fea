import { type Condition, parseCondition } from "./condition.ts";
import { clausesOf } from "./evaluate-condition.ts";
import { TopicName } from "./http/v1/topics.ts";
import { DeviceId, type ProjectId } from "./ids.ts";
import { canonicalToken, type Lane } from "./platforms.ts";
import { targetKey, UserId, userKey } from "./users.ts";

/** A parsed entry of `targets`. `source` is the entry as sent, `token` in its canonical form. */
export type Target = { readonly source: string } & (
  | { readonly kind: "all" }
  | { readonly kind: "device"; readonly id: DeviceId }
  | { readonly kind: "topic"; readonly name: string }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "user"; readonly id: UserId }
  | { readonly kind: "pair"; readonly of: "metadata" | "identifiers"; readonly path: string; readonly value: string }
  | { readonly kind: "condition"; readonly condition: Condition }
);

type Parsed = { target: Target } | { problem: string };

const topic = (source: string, name: string): Parsed => {
  const parsed = TopicName.safeParse(name);
  if (parsed.success) return { target: { source, kind: "topic", name } };
  return { problem: `is not a target: as a topic's name it ${parsed.error.issues[0]?.message ?? "is not valid"}` };
};

const device = (source: string, id: string): Parsed => {
  const parsed = DeviceId.safeParse(id);
  if (parsed.success) return { target: { source, kind: "device", id: parsed.data } };
  return { problem: `is not a target: a device id is \`dev_\` and 26 characters` };
};

const user = (source: string, id: string): Parsed => {
  const parsed = UserId.safeParse(id);
  if (parsed.success) return { target: { source, kind: "user", id: parsed.data } };
  return { problem: `is not a target: a user id ${parsed.error.issues[0]?.message ?? "is not valid"}` };
};

const pair = (source: string, of: "metadata" | "identifiers", rest: string): Parsed => {
  const split = rest.indexOf("=");
  if (split < 1) return { problem: `is not a target: write \`${of}:<path>=<value>\`` };
  return { target: { source, kind: "pair", of, path: rest.slice(0, split), value: rest.slice(split + 1) } };
};

const condition = (source: string, expression: string): Parsed => {
  const parsed = parseCondition(expression);
  if ("problem" in parsed) return { problem: `is not a target: ${parsed.problem}` };
  return { target: { source, kind: "condition", condition: parsed.condition } };
};

/** Parses one entry of `targets`, or returns its problem in words. */
export const parseTarget = (source: string): Parsed => {
  if (source === "all") return { target: { source, kind: "all" } };
  if (source.startsWith("dev_")) return device(source, source);
  const colon = source.indexOf(":");
  if (colon < 0) return topic(source, source);
  const rest = source.slice(colon + 1);
  switch (source.slice(0, colon)) {
    case "device":
      return device(source, rest);
    case "topic":
      return topic(source, rest);
    case "token":
      return rest === ""
        ? { problem: "is not a target: write `token:<push token>`" }
        : { target: { source, kind: "token", token: canonicalToken(rest) } };
    case "user":
      return user(source, rest);
    case "metadata":
      return pair(source, "metadata", rest);
    case "identifiers":
      return pair(source, "identifiers", rest);
    case "condition":
      return condition(source, rest);
    default:
      return {
        problem:
          "is not a target: known prefixes are device:, topic:, token:, user:, metadata:, identifiers:, condition:",
      };
  }
};

/** The longest value that an index of devices contains. */
export const maxIndexedBytes = 256;

/** The number of clauses of a target that no index can answer: those of a condition, and a long value. Each is evaluated per device. */
export const targetClauses = (target: Target): number => {
  if (target.kind === "condition") return clausesOf(target.condition);
  return target.kind === "pair" && Buffer.byteLength(target.value) > maxIndexedBytes ? 1 : 0;
};

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

const kindsOf = (targets: readonly string[]) =>
  targets.map((source) => {
    const parsed = parseTarget(source);
    return "target" in parsed ? parsed.target.kind : undefined;
  });

/** The lane of a notification: direct when every target is a device, a token or a user. One without targets has a list of recipients. */
export const laneOf = (targets: readonly string[]): Lane =>
  targets.length > 0 && kindsOf(targets).every((kind) => kind !== undefined && reach[kind].lane === "direct")
    ? "direct"
    : "broadcast";

/**
 * Whether a target may mean one person, as a pair or a condition may. Waiting pushes of such a notification do not follow a device to its
 * next user. Recipients are single devices or users.
 */
export const isPersonal = (targets: readonly string[]): boolean =>
  targets.length === 0 || kindsOf(targets).some((kind) => kind === undefined || reach[kind].personal);

/** Whether a target of the kind promises few devices. */
export const hasFewDevices = ({ kind }: Target): boolean => reach[kind].small;

/** Whether the targets promise few devices. If their send has many after all, dispatch expands it. */
export const allHaveFewDevices = (targets: readonly string[]): boolean =>
  targets.length > 0 &&
  targets.length <= maxSmallAudience &&
  kindsOf(targets).every((kind) => kind !== undefined && reach[kind].small);

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
