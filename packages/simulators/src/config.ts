import { z } from "zod";
import { schemaProblems } from "./script/rule.ts";

const port = z.coerce.number().int().min(0).max(65_535).default(0);

/** Port 0 takes a free port. The simulators print their addresses once all of them listen. */
const Environment = z.object({
  HERALD_SIMULATORS_HOST: z.string().min(1).default("127.0.0.1"),
  HERALD_SIMULATORS_PUBLIC_HOST: z.string().min(1).optional(),
  HERALD_SIMULATORS_APNS_PORT: port,
  HERALD_SIMULATORS_FCM_PORT: port,
  HERALD_SIMULATORS_WEBPUSH_PORT: port,
  HERALD_SIMULATORS_CONTROL_PORT: port,
  HERALD_SIMULATORS_RECORD: z.enum(["all", "count"]).default("all"),
  HERALD_SIMULATORS_KEEP: z.coerce.number().int().min(1).default(200_000),
  HERALD_SIMULATORS_GATEWAY: z
    .url()
    .transform((url) => new URL(url).origin)
    .optional(),
  HERALD_SIMULATORS_IDENTITY_FILE: z.string().min(1).optional(),
  HERALD_SIMULATORS_SUBSCRIPTIONS_FILE: z.string().min(1).optional(),
});

/** Addresses that a server can listen on but a client cannot connect to. */
const wildcards = ["0.0.0.0", "::"];

/** @throws Error that lists every problem with its variable's name */
export function readEnvironment(environment: Readonly<Record<string, string | undefined>>) {
  const { data: values, error } = Environment.safeParse(environment);
  if (error)
    throw new Error(`The simulators' configuration is wrong:\n  ${schemaProblems(error, "environment").join("\n  ")}`);
  const host = values.HERALD_SIMULATORS_HOST;
  return {
    host,
    publicHost: values.HERALD_SIMULATORS_PUBLIC_HOST ?? (wildcards.includes(host) ? "127.0.0.1" : host),
    ports: {
      apns: values.HERALD_SIMULATORS_APNS_PORT,
      fcm: values.HERALD_SIMULATORS_FCM_PORT,
      webpush: values.HERALD_SIMULATORS_WEBPUSH_PORT,
      control: values.HERALD_SIMULATORS_CONTROL_PORT,
    },
    gateway: values.HERALD_SIMULATORS_GATEWAY,
    record: values.HERALD_SIMULATORS_RECORD,
    keep: values.HERALD_SIMULATORS_KEEP,
    identityFile: values.HERALD_SIMULATORS_IDENTITY_FILE,
    webpush: { subscriptionsFile: values.HERALD_SIMULATORS_SUBSCRIPTIONS_FILE },
  };
}
