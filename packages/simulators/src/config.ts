import { z } from "zod";

const port = z.coerce.number().int().min(0).max(65_535).default(0);

/** 0 takes a free port; the addresses are printed once everything listens. */
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
  HERALD_SIMULATORS_STATE_FILE: z.string().min(1).optional(),
});

/** Wildcards are good to listen on, not to connect to. */
const wildcards = ["0.0.0.0", "::"];

/** @throws with every problem at once, each with the variable's name */
export function readConfig(environment: Readonly<Record<string, string | undefined>>) {
  const parsed = Environment.safeParse(environment);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new Error(`The simulators' configuration is wrong:\n  ${problems.join("\n  ")}`);
  }
  const values = parsed.data;
  const host = values.HERALD_SIMULATORS_HOST;
  return {
    stateFile: values.HERALD_SIMULATORS_STATE_FILE,
    options: {
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
      ...(values.HERALD_SIMULATORS_IDENTITY_FILE && { identityFile: values.HERALD_SIMULATORS_IDENTITY_FILE }),
    },
  };
}
