import type { System } from "./herald.ts";
import { resultOf } from "./processes.ts";

export type Reported = {
  readonly notification: string;
  readonly seconds: number;
  readonly statuses: Readonly<Record<string, number>>;
};

/** Reports opens, each from another device, in a separate process. Forged opens have a pace. */
export const reportOpens = async (
  system: System,
  count: number,
  kind: { readonly kind: "true" } | { readonly kind: "forged"; readonly pace: number },
): Promise<Reported> => {
  const args = [system.gateway, system.project.id, String(count), kind.kind];
  const withPace = kind.kind === "forged" ? [...args, String(kind.pace)] : args;
  return resultOf("bench/src/open-load.ts", withPace, { BENCH_OPEN_KEYS: system.openKeys });
};
