import { once } from "node:events";
import { costOf, partLines } from "../broadcast.ts";
import type { System } from "../herald.ts";
import { firstLine, start } from "../processes.ts";
import type { Row } from "../row.ts";

/** Some seconds of the highest rate. */
const count = 3_000;

type Registered = { readonly seconds: number; readonly statuses: Readonly<Record<string, number>> };

const register = async ({ gateway, project }: System, first: number, status: string): Promise<number> => {
  const child = start("bench/src/register-load.ts", [gateway, project.token, String(first), String(count)]);
  const { seconds, statuses } = await firstLine<Registered>(child);
  if (child.exitCode === null) await once(child, "exit");
  if (statuses[status] !== count)
    throw new Error(`${count} registrations were answered ${JSON.stringify(statuses)}: all must be ${status}`);
  return count / seconds;
};

/** Apps that register: on their first start, and as they do on every later one. */
export const registrationsRow: Row = {
  name: "registrations",
  async *measure({ system, runs }) {
    for (const [title, status] of [
      ["devices that register", "201"],
      ["devices that register again, unchanged", "200"],
    ] as const) {
      const rates: number[] = [];
      const costs: Record<string, number>[] = [];
      for (let run = 0; run < runs; run++)
        costs.push(
          await costOf(system, count, async () => {
            rates.push(await register(system, run * count, status));
          }),
        );
      yield { title, lines: [{ label: "registrations/s", values: rates }, ...partLines(costs, "µs a registration")] };
    }
  },
};
