import { randomUUID } from "node:crypto";
import { eventually, expectStatus } from "@herald/testing";
import { beforeAll, expect, test } from "vitest";
import type { Collector } from "../harness/collector.ts";
import type { Project } from "../harness/project.ts";
import type { System } from "../harness/system.ts";
import type { OwnSystem } from "./own-system.ts";

const hex = (length: number) => randomUUID().replaceAll("-", "").slice(0, length);

/** Each command of the driver has a span, such as `find devices`. */
const command = /^(find|insert|update|delete|aggregate|findAndModify|getMore|count|distinct) /;

/** What is read again when it is old. */
const byAge = ["dispatch: find credentials", "dispatch: find notifications"];
/** How often dispatch looks whether all devices of a large send have their results depends on which message comes last. */
const untilEnd = ["dispatch: aggregate notifications", "dispatch: find deliveries", "dispatch: update notifications"];

const small = ["dispatch: insert notifications", "dispatch: update notifications", "registry: find devices"];
const large = [
  ...["dispatch: aggregate notifications", "dispatch: find deliveries", "dispatch: insert deliveries"],
  ...["dispatch: insert notifications", "dispatch: update deliveries", "dispatch: update notifications"],
  ...["registry: aggregate devices", "registry: find devices", "registry: insert expansions"],
];

/** Counts the commands that a send costs, by the spans of a system that exports them all. */
export function testDatabaseCommands(own: () => OwnSystem): void {
  let system: System;
  let collector: Collector;
  let project: Project;
  let device: string;
  beforeAll(async () => {
    ({ system, collector } = own());
    project = await system.project("Commands");
    const registered = await project.register({
      ...{ topics: ["news"], user_id: "ann", identifiers: { current_time_zone: "Asia/Tokyo" } },
    });
    device = registered.device.id;
  });

  /** Sends, and waits for the end. Resolves to the id of its trace. */
  const traced = async (target: string, kind?: string): Promise<string> => {
    const traceId = hex(32);
    const headers = { traceparent: `00-${traceId}-${hex(16)}-01` };
    const { id } = await project.send({ title: "Hello", targets: [target], ...(kind && { kind }) }, headers);
    await project.final(id);
    return traceId;
  };

  const commandsIn = (trace: string): string[] =>
    collector.spans
      .filter(({ traceId, name, service }) => traceId === trace && command.test(name) && service !== "herald-analytics")
      .map(({ service, name }) => `${service.replace("herald-", "")}: ${name}`);

  /** The database commands of a send, sorted. */
  const commandsOf = async (target: string, kind?: string): Promise<string[]> => {
    // The first one also reads settings.
    await traced(target, kind);
    const trace = await traced(target, kind);
    // A service exports its spans in their order: those of a later send show that none is missing.
    const later = await traced(target, kind);
    await eventually(
      () => expect(commandsIn(later)).toEqual(expect.arrayContaining(["registry: find devices", untilEnd[2]])),
      { timeoutMs: 30_000 },
    );
    const commands = commandsIn(trace).filter((one) => !byAge.includes(one));
    return commands.filter((one, at) => !untilEnd.includes(one) || commands.indexOf(one) === at).sort();
  };

  test("rules cost a send of a project without rules no database command", async () => {
    expect(await commandsOf("topic:news")).toEqual(large);
    expect(await commandsOf("user:ann")).toEqual(small);
    expect(await commandsOf(device)).toEqual(small);
  });

  test("with a cap, a send also reads and takes its slot, and reads its devices no further time", async () => {
    for (const kind of ["offers", "tips", "known"]) {
      const body = { kind: { title: kind, frequency_cap: { count: 50, per: "week" } } };
      expectStatus(await system.admin(`PUT /projects/${project.id}/kinds/${kind}`, { body }), 201);
    }
    const capped = ["dispatch: find caps", "dispatch: insert caps"];
    // Processes know the last kind after a moment, and the first one with it.
    await eventually(async () => expect(await commandsOf("user:ann", "known")).toContain(capped[0]));
    expect(await commandsOf("user:ann", "offers")).toEqual([...small, ...capped].sort());
    expect(await commandsOf("topic:news", "tips")).toEqual([...large, ...capped].sort());
  });
}
