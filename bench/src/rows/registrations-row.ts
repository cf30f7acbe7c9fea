import { type Cost, costOf, partLines } from "../cost.ts";
import type { System } from "../herald.ts";
import type { Answered } from "../load.ts";
import { resultOf } from "../processes.ts";
import type { Row } from "../row.ts";

/** Some seconds of the highest rate. */
const count = 3_000;

const register = async ({ gateway, project }: System, first: number, status: string): Promise<number> => {
  const args = [gateway, project.token, String(first), String(count)];
  const { seconds, statuses } = await resultOf<Answered>("bench/src/register-load.ts", args);
  if (statuses[status] !== count)
    throw new Error(`${count} registrations were answered ${JSON.stringify(statuses)}: all must be ${status}`);
  return count / seconds;
};

const kinds = [
  { title: "devices that register", status: "201", figure: { figure: "registrations" } },
  { title: "devices that register again, unchanged", status: "200", figure: {} },
] as const;

/** Apps that register: on their first start, and as they do on every later one. */
export const registrationsRow: Row = {
  name: "registrations",
  about: "devices that register, one a request: new ones, and the same again unchanged",
  async *measure({ system, runs }) {
    for (const { title, status, figure } of kinds) {
      const rates: number[] = [];
      const costs: Cost[] = [];
      for (let run = 0; run < runs; run++)
        costs.push(
          await costOf(system, count, async () => {
            rates.push(await register(system, run * count, status));
          }),
        );
      yield {
        title,
        lines: [{ label: "registrations/s", values: rates, ...figure }, ...partLines(costs, "µs a registration")],
      };
    }
  },
};
