import { type Cost, costOf, type Measured, partLines, services, sumOf } from "../cost.ts";
import { besideRegisterFloor } from "../floors.ts";
import type { System } from "../herald.ts";
import type { Answered } from "../load.ts";
import { resultOf } from "../processes.ts";
import type { RegisterLoad } from "../register-load.ts";
import type { Row } from "../row.ts";
import { until } from "../until.ts";

/** Some seconds of work at the highest rate. */
const count = 4_000;
/** After so many registrations the code is compiled. */
const warmUp = 1_000;

type Registrations = { readonly perSecond: number; readonly cost: Cost };

/** Registers devices, waits for all follow-up work, then checks the status of each answer. */
const register = async (
  of: Measured,
  load: RegisterLoad,
  status: string,
  idle: () => Promise<void>,
): Promise<Registrations> => {
  let answered: Answered | undefined;
  const cost = await costOf(of, load.count, async () => {
    answered = await resultOf<Answered>("bench/src/register-load.ts", [JSON.stringify(load)]);
    await idle();
  });
  if (answered?.statuses[status] !== load.count)
    throw new Error(
      `${load.count} registrations were answered ${JSON.stringify(answered?.statuses)}: all must be ${status}`,
    );
  return {
    perSecond: load.count / answered.seconds,
    cost: { ...cost, load: answered.cpuMicros / load.count },
  };
};

/** Resolves when all device events are published. */
const eventsAreOut = async (system: System): Promise<void> => {
  const registry = system.database("registry");
  const waiting = { devices: { outbox: { $exists: true } }, pendingEvents: {} };
  await until("all events are out", async () => {
    const left = await Promise.all(
      Object.entries(waiting).map(([name, filter]) => registry.collection(name).countDocuments(filter, { limit: 1 })),
    );
    return left.every((rows) => rows === 0) || undefined;
  });
};

const kinds = [
  { title: "Devices that register: new", by: "backend", status: "201", figure: "registrations", floor: "201" },
  {
    title: "Devices that register: again by their app, unchanged",
    by: "app",
    status: "200",
    figure: "registrations-unchanged",
    floor: "200",
  },
  { title: "Devices that register: again by a backend, with a new credential", by: "backend", status: "200" },
] as const;

/** Registrations of apps: on their first start, and on every later start. */
export const registrationsRow: Row = {
  name: "registrations",
  about: "devices that register, one a request: new ones, and the same again by their app and by a backend",
  async *measure({ system, runs }) {
    const { gateway, project } = system;
    const toHerald = (by: "backend" | "app", first: number, size: number): RegisterLoad => ({
      gateway,
      project,
      by,
      first,
      count: size,
    });
    const through = (load: RegisterLoad, status: string) => register(system, load, status, () => eventsAreOut(system));
    const tables = await besideRegisterFloor(system.mongoUrl, async (floor) => {
      const { mongo = 0, postgres = 0 } = system.processes;
      const processes = { ...floor.processes, ...(mongo && { mongo }), ...(postgres && { postgres }) };
      const throughFloor = (load: RegisterLoad, status: string) =>
        register({ processes }, { ...load, gateway: floor.gateway }, status, async () => {});
      const measured = kinds.map((kind) => ({ kind, own: [] as Registrations[], floors: [] as Registrations[] }));
      for (let run = -1; run < runs; run++) {
        const first = run < 0 ? runs * count : run * count;
        const size = run < 0 ? warmUp : count;
        for (const { kind, own, floors } of measured) {
          const load = toHerald(kind.by, first, size);
          const ours = await through(load, kind.status);
          const theirs = "floor" in kind ? await throughFloor(load, kind.floor) : undefined;
          if (run < 0) continue;
          own.push(ours);
          if (theirs) floors.push(theirs);
        }
      }
      return measured;
    });
    for (const { kind, own, floors } of tables) {
      const rates = own.map(({ perSecond }) => perSecond);
      const costs = own.map(({ cost }) => cost);
      const floorLines = [
        { label: "floor/s", values: floors.map(({ perSecond }) => perSecond) },
        { label: "CPU of floor, µs", values: floors.map(({ cost }) => sumOf(cost)) },
      ];
      yield {
        title: kind.title,
        lines: [
          { label: "devices/s", values: rates, ...("figure" in kind ? { figure: kind.figure } : {}) },
          ...(floors.length > 0 ? floorLines : []),
          { label: "CPU of all, µs", values: costs.map((cost) => sumOf(cost)) },
          { label: "CPU of Herald, µs", values: costs.map((cost) => sumOf(cost, services)) },
          ...partLines(costs, "µs"),
        ],
      };
    }
  },
};
