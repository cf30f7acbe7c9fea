import { type Condition, clausesOf, parseCondition } from "./condition.ts";
import { TopicName } from "./http/v1/topics.ts";
import { type DeviceId, isDeviceId } from "./ids.ts";
import { canonicalToken } from "./platforms.ts";
import { UserId } from "./users.ts";

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
  if (isDeviceId(id)) return { target: { source, kind: "device", id: id as DeviceId } };
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

const kindsByPrefix: Readonly<Record<string, Target["kind"] | undefined>> = {
  device: "device",
  topic: "topic",
  token: "token",
  user: "user",
  metadata: "pair",
  identifiers: "pair",
  condition: "condition",
};

/** What a target that was accepted names, without parsing it again: a condition takes long. Undefined: nothing that is accepted. */
export const kindOfTarget = (source: string): Target["kind"] | undefined => {
  if (source === "all") return "all";
  if (source.startsWith("dev_")) return "device";
  const colon = source.indexOf(":");
  if (colon < 0) return "topic";
  const prefix = source.slice(0, colon);
  return Object.hasOwn(kindsByPrefix, prefix) ? kindsByPrefix[prefix] : undefined;
};

/** Parses one entry of `targets`, or returns its problem in words. */
export const parseTarget = (source: string): Parsed => {
  const colon = source.startsWith("dev_") ? -1 : source.indexOf(":");
  const rest = source.slice(colon + 1);
  switch (kindOfTarget(source)) {
    case "all":
      return { target: { source, kind: "all" } };
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
    case "pair":
      return pair(source, source.startsWith("metadata:") ? "metadata" : "identifiers", rest);
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
