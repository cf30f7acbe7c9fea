import { randomBytes } from "node:crypto";
import { headerNames } from "@herald/contracts";
import { type Broker, eventually, expectStatus, readPublished, request, startBroker } from "@herald/testing";
import type { ServiceName, System } from "../../harness/system.ts";
import { startWebhookReceiver } from "../../harness/webhook-receiver.ts";
import { type Findings, type Fixture, NotHere, type Row } from "../row.ts";
import { seconds, startTrial, type Trial } from "../trial.ts";
import { startDatabase } from "./database.ts";

const names: readonly ServiceName[] = ["gateway", "analytics", "registry", "dispatch"];
const newKey = `next:${randomBytes(32).toString("base64")}`;

/** The steps of docs/how-to/rotate-keys.md: the new value of a key variable. */
const steps: readonly ((ring: string, variable: string) => string)[] = [
  (ring) => `${ring},${newKey}`,
  (ring) => `${newKey},${ring}`,
  // Open tokens live for thirty days, and audit rows for ever.
  (ring, variable) => (/OPEN|REGISTRY/.test(variable) ? `${newKey},${ring}` : newKey),
];

/** The step after which stored secrets are encrypted with the new key. */
const newIsFirst = 1;

/** The ids that every replica reports that has not been killed, without duplicates: one text for each order of keys. */
const idsIn = async (system: System): Promise<string[]> => {
  const { services } = expectStatus(await system.admin("GET /status"), 200).body.data;
  type Replica = { readonly state: string; readonly keys?: Record<string, string[]> };
  const rings = services.flatMap(({ replicas }: { replicas: Replica[] }) =>
    replicas
      .filter(({ state }) => state !== "not_answering")
      .flatMap(({ keys = {} }) => Object.values(keys).map((ids) => ids.join())),
  );
  return [...new Set<string>(rings)].toSorted();
};

type Rotated = {
  readonly system: System;
  readonly broker: Broker;
  readonly server: Awaited<ReturnType<typeof startDatabase>>;
  /** What every service gets at its next start. */
  readonly next: { change: (ring: string, variable: string) => string; password: string };
};

/** A system whose keys and passwords change: of services, broker and database. */
const rotated: Fixture<Rotated> = {
  open: async (stage) => {
    const next: Rotated["next"] = { change: (ring) => ring, password: somePassword() };
    const server = await startDatabase(stage, next.password);
    let broker: Broker | undefined;
    const system = await stage.start({
      mongoUrl: server.url,
      broker: async () => {
        broker = await startBroker({ syncAlways: true }, stage.brokerSource);
        return broker;
      },
      startedFrom: (name, usual) => {
        const rings = Object.entries(usual.env).filter(([variable]) => variable.endsWith("_KEYS"));
        const changed = rings.map(([variable, ring]) => [variable, next.change(ring ?? "", variable)]);
        const url = usual.env.HERALD_MONGO_URL?.replace(/:\w+@/, `:${next.password}@`);
        return {
          ...usual,
          env: {
            ...usual.env,
            ...Object.fromEntries(changed),
            ...broker?.loginOf(name),
            ...(url && { HERALD_MONGO_URL: url }),
          },
        };
      },
    });
    if (!broker) throw new Error("the system was started without its broker");
    return { system, broker, server, next };
  },
};

export const rotate: Row = {
  name: "rotate",
  fault:
    "all keys of all services rotated: the new one second, then first, then alone; kill -9 of analytics twice at each step (short: when the new one becomes first)",
  pass: "only 202 or 503 with Retry-After; earlier opens count; credentials are read; webhooks arrive with their signatures; 0 errors",
  fixture: rotated,
  run: async ({ long, use, defer }) => {
    const { system, next } = await use(rotated);
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    const receiver = await startWebhookReceiver(() => 204);
    defer(receiver.stop);
    const body = { webhook: { url: receiver.urlOf("/rotated") } };
    const { secret } = expectStatus(await trial.project.call("POST /webhooks", { body }), 201).body;
    receiver.expectSecret("/rotated", secret);
    const [before] = await idsIn(system);
    const expected = [[`${before},next`], [`next,${before}`], ["next", `next,${before}`]];
    for (const [step, change] of steps.entries()) {
      next.change = change;
      for (const name of names) {
        await trial.broadcast();
        // In the middle of its start, when it encrypts stored secrets with the first key.
        const twice = name === "analytics" && (long || step === newIsFirst);
        await system.services[name].kill(twice ? "SIGKILL" : "SIGTERM");
        if (twice) await system.services[name].kill("SIGKILL");
        await system.services[name].ready();
        await trial.recovered();
      }
      await eventually(
        async () => {
          const [found, wanted] = [await idsIn(system), expected[step] ?? []];
          // The status takes a replica that was killed for a live one for 20 s, for which the short form waits once, at the end.
          const allowed = long || step === steps.length - 1 ? wanted : found;
          if (found.join(" ") !== allowed.join(" ") || wanted.some((ids) => !found.includes(ids)))
            throw new Error(`step ${step + 1}: keys are ${found.join(" ")}`);
        },
        { timeoutMs: 90_000 },
      );
    }
    const findings = await finish(trial, system, from, { answers: [202, 503] });
    const received = () => receiver.on("/rotated");
    await eventually(
      async () => {
        const ids = new Set(received().map(({ event }) => event.id));
        const events = await readPublished(system.broker, `push.evt.v1.${trial.project.id}.>`);
        const missing = events.filter(({ headers }) => !ids.has(headers[headerNames.ceId] ?? ""));
        if (missing.length > 0) throw new Error(`${missing.length} of ${events.length} events came by no webhook`);
      },
      { timeoutMs: 90_000 },
    ).catch((error: Error) => trial.problem(error.message));
    const forged = received().filter(({ genuine }) => !genuine).length;
    if (forged > 0) trial.problem(`${forged} of ${received().length} webhooks were not signed with their secret`);
    trial.note(`${received().length} webhooks`);
    return findings;
  },
};

type Expected = {
  readonly answers: readonly number[];
  readonly error?: string;
  /** Devices may get a push twice, marked: a process ended before it could store the outcome. */
  readonly mayRepeat?: boolean;
};

/** Ends the trial. Other errors in the log are problems, and so are other answers to sends. */
const finish = async (
  trial: Trial,
  { logs }: System,
  from: number,
  { answers, error = "no error", mayRepeat = false }: Expected,
): Promise<Findings> => {
  const findings = await trial.finish({ timeoutMs: 90_000 });
  if (findings.repeated.marked > 0 && !mayRepeat) trial.problem(`${findings.repeated.marked} came twice`);
  for (const [status, count] of trial.load.answers)
    if (!answers.includes(status)) trial.problem(`${count} sends were answered ${status}`);
  for (const { part, line, level } of logs.lines
    .slice(from)
    .filter(({ level, line }) => level === "error" && !line.includes(error))
    .slice(0, 10))
    trial.problem(`${part} ${level}: ${line.slice(0, 300)}`);
  return findings;
};

export const rotatePasswords: Row = {
  name: "rotate-passwords",
  fault: "the passwords of all NATS users change (long: twice); services restart with the new ones",
  pass: "503 with Retry-After until then; services log in with the new ones alone",
  fixture: rotated,
  run: async ({ long, use, brokerSource }) => {
    if (brokerSource.kind !== "binary") throw new NotHere(`brokers are not processes here: ${brokerSource.kind}`);
    const { system, broker } = await use(rotated);
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    for (let round = 0; round < (long ? 2 : 1); round++) {
      await trial.broadcastUnderWay();
      const begun = performance.now();
      await broker.changePasswords?.();
      await Promise.all(names.map((name) => system.services[name].kill("SIGTERM")));
      await system.ready();
      await trial.recovered();
      trial.note(`round ${round + 1}: sends were taken again ${seconds(performance.now() - begun)} after the change`);
    }
    // A repeat of a send whose first attempt was under way is a 409. The services say that NATS refuses them.
    return finish(trial, system, from, { answers: [202, 409, 503], error: "Authorization Violation" });
  },
};

const somePassword = () => randomBytes(12).toString("hex");

export const rotateDatabasePassword: Row = {
  name: "rotate-database-password",
  fault: "the database's password changes (long: twice), all connections break, services restart with the new one",
  pass: "only 202 or 503; services that know only the old password wait",
  fixture: rotated,
  run: async ({ long, use }) => {
    const { system, server, next } = await use(rotated);
    if (server.setPassword === undefined) throw new NotHere("the database here asks for no password");
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    for (let round = 0; round < (long ? 2 : 1); round++) {
      await trial.broadcastUnderWay();
      const password = somePassword();
      await server.setPassword(password);
      // Open connections would go on.
      await system.database.cut();
      await system.database.heal();
      await trial.broadcast();
      await expectRefused(system);
      next.password = password;
      await Promise.all(names.map((name) => system.services[name].kill("SIGTERM")));
      await system.ready();
      await trial.recovered();
    }
    return finish(trial, system, from, { answers: [202, 409, 503], error: "Authentication failed", mayRepeat: true });
  },
};

/** Waits until the services say that they have no database. */
const expectRefused = async ({ services }: System): Promise<void> => {
  for (const name of names.filter((one) => one !== "gateway"))
    await eventually(
      async () => {
        const { status, body } = await request(services[name].url, "GET /readyz");
        const failing = (body?.failing ?? []).map(({ check }: { check: string }) => check);
        if (status !== 503 || !failing.includes("database")) throw new Error(`${name} is ${status}: ${failing}`);
      },
      { timeoutMs: 30_000 },
    );
};
