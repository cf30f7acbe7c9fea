import { eventually, request, startBroker } from "@herald/testing";
import { startBeside } from "../../harness/beside.ts";
import type { ServiceName, System } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { crowd, seconds, startTrial, type Trial } from "../trial.ts";
import { ownDatabase } from "./database.ts";

const names: readonly ServiceName[] = ["dispatch", "registry", "gateway", "analytics"];
/** The deadline of a graceful stop. */
const stopDeadlineMs = 30_000;
/** A service waits 25 s for its work, but not without any. */
const idleStopMs = 20_000;

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Sends SIGTERM like an orchestrator. Resolves to the time until the end, and the log line of the supervisor. */
async function terminate(system: System, name: ServiceName): Promise<{ tookMs: number; words: string }> {
  const pid = system.services[name].pid();
  const before = system.logs.lines.length;
  const from = performance.now();
  process.kill(pid, "SIGTERM");
  const gone = () => {
    if (isAlive(pid)) throw new Error(`${name} is still there`);
  };
  await eventually(gone, { timeoutMs: stopDeadlineMs + 10_000 });
  const tookMs = performance.now() - from;
  const said = () => {
    const line = system.logs.lines.slice(before).find((one) => one.line.startsWith(`${name} ended with`));
    if (!line) throw new Error(`no log line says how ${name} ended`);
    return line.line.replace(/;.*/, "");
  };
  return { tookMs, words: await eventually(said, { timeoutMs: 10_000 }) };
}

async function terminateWell(system: System, trial: Trial, name: ServiceName): Promise<number> {
  const { tookMs, words } = await terminate(system, name);
  if (tookMs > stopDeadlineMs) trial.problem(`${name} took ${seconds(tookMs)} to stop`);
  if (words !== `${name} ended with exit code 0`) trial.problem(words);
  return tookMs;
}

/** A stopping service returns or finishes its messages, so no push may come twice. */
async function finishWithoutRepeats(trial: Trial, timeoutMs: number) {
  const findings = await trial.finish({ timeoutMs });
  const { marked } = findings.repeated;
  if (marked > 0) trial.problem(`${marked} came twice, though everybody stopped in good order`);
  return findings;
}

const sigterm: Row = {
  name: "sigterm",
  fault: "SIGTERM to each service during broadcasts, 10 times (short: once)",
  pass: "exits 0 within its 30 s; no repeat",
  run: async ({ long, shared }) => {
    const system = await shared();
    const trial = await startTrial(system);
    const longest = new Map<string, number>();
    for (let round = 0; round < (long ? 10 : 1); round++) {
      for (const name of names) {
        await trial.broadcastUnderWay();
        const tookMs = await terminateWell(system, trial, name);
        longest.set(name, Math.max(longest.get(name) ?? 0, tookMs));
        await Promise.all([trial.recovered(), system.services[name].ready()]);
      }
    }
    trial.note(`longest stops: ${[...longest].map(([name, ms]) => `${name} ${seconds(ms)}`).join(", ")}`);
    return finishWithoutRepeats(trial, 60_000);
  },
};

const sigtermSlow: Row = {
  name: "sigterm-slow",
  fault: "SIGTERM to dispatch while APNs takes 10 s (short: 5 s) to answer",
  pass: "it waits for what is in flight and leaves the rest to the next process",
  run: async ({ long, shared }) => {
    const system = await shared();
    const script = [{ provider: "apns", tokenPrefix: crowd, delayMs: long ? 10_000 : 5_000 }];
    const trial = await startTrial(system, { script });
    await trial.broadcast();
    const id = await trial.broadcastUnderWay();
    await eventually(
      async () => {
        const { accepted } = (await trial.project.notification(id)).counts;
        if (accepted === 0) throw new Error("nothing of the broadcast is accepted yet");
      },
      { timeoutMs: 30_000 },
    );
    trial.note(`stopped after ${seconds(await terminateWell(system, trial, "dispatch"))}`);
    await system.simulators.script([]);
    await Promise.all([trial.recovered(), system.services.dispatch.ready()]);
    return finishWithoutRepeats(trial, 90_000);
  },
};

type Failing = { check: string; reason: string };

/** The failing checks in the `/readyz` answer of a service. */
async function waitsFor(ready: () => Promise<{ status: number; body: { failing?: Failing[] } }>): Promise<Failing[]> {
  const { status, body } = await ready();
  return status === 200 ? [] : (body.failing ?? []);
}

const startOrder: Row = {
  name: "start-order",
  fault: "all killed during a broadcast; services started first, then database and NATS in either order",
  pass: "each stays alive, says what it waits for, and can be stopped; continues by itself",
  fixture: ownDatabase,
  run: async ({ long, use }) => {
    const { system, server: database } = await use(ownDatabase);
    const trial = await startTrial(system);

    /** Services that need an unavailable dependency report it within seconds; all other services are ready. */
    const expectWaiting = async (unavailable: { bus: boolean; database: boolean }) => {
      for (const name of names) {
        const needed = Object.entries({ bus: unavailable.bus, database: unavailable.database && name !== "gateway" })
          .filter(([, is]) => is)
          .map(([check]) => check);
        await eventually(
          async () => {
            const { url } = system.services[name];
            const live = await request(url, "GET /livez");
            if (live.status !== 200) throw new Error(`${name} is not alive (${live.status})`);
            const failing = await waitsFor(() => request(url, "GET /readyz"));
            const said = failing.map(({ check }) => check).filter((check) => check === "bus" || check === "database");
            if (said.sort().join() !== needed.join())
              throw new Error(`${name} says that it waits for ${said.join() || "nothing"} instead of ${needed.join()}`);
          },
          { timeoutMs: 30_000 },
        ).catch((error: Error) => trial.problem(error.message));
      }
    };

    for (const first of long ? (["database", "nats", "database", "nats"] as const) : (["database"] as const)) {
      await trial.broadcastUnderWay();
      // The load would report sends that are not accepted in time as failures.
      await system.broker.kill();
      await database.kill();
      await Promise.all(names.map((name) => system.services[name].kill()));
      await expectWaiting({ bus: true, database: true });
      await terminateWell(system, trial, "registry");
      if (first === "database") await database.begin();
      else await system.broker.restart();
      await expectWaiting({ bus: first === "database", database: first !== "database" });
      if (first === "database") await system.broker.restart();
      else await database.begin();
      await trial.recovered();
      await system.ready();
    }
    return trial.finish({ timeoutMs: 90_000 });
  },
};

const beforeBootstrap: Row = {
  name: "before-bootstrap",
  fault: "each service started before bootstrap",
  pass: "stays alive, not ready, says what it waits for, stops cleanly",
  run: async ({ shared, brokerSource, defer }) => {
    const system = await shared();
    const trial = await startTrial(system, { each: 10, script: [] });
    const broker = await startBroker({}, brokerSource);
    defer(() => broker.stop());
    const env = { HERALD_NATS_URL: broker.url };
    const waits = names.map(async (name) => {
      const service = await startBeside(system, name, { env });
      defer(() => service.stop());
      let said: Failing[] = [];
      await eventually(
        async () => {
          said = await waitsFor(() => service.probe("/readyz"));
          if (said.length === 0) throw new Error(`${name} says that it is ready`);
          if (said.some(({ check }) => check === "bus")) throw new Error(`${name} has not found the broker`);
        },
        { timeoutMs: 60_000 },
      ).catch((error: Error) => trial.problem(error.message));
      const words = said.map(({ check, reason }) => `${check}: ${reason}`);
      if (words.some((one) => /it is unavailable$/.test(one))) trial.problem(`${name} does not say what it waits for`);
      trial.note(`${name} waits: ${words.join("; ")}`);
      const { code, tookMs } = await service.stop();
      if (code !== 0) trial.problem(`${name} ended with exit code ${code}`);
      if (tookMs > idleStopMs) trial.problem(`${name} took ${seconds(tookMs)} to stop while it had nothing to do`);
    });
    await Promise.all(waits);
    await trial.recovered();
    return trial.finish();
  },
};

export const gracefulRows: readonly Row[] = [sigterm, sigtermSlow, startOrder, beforeBootstrap];
