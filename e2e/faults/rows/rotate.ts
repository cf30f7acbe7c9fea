import { randomBytes } from "node:crypto";
import { headerNames } from "@herald/contracts";
import { type Broker, eventually, expectStatus, readPublished, request, startBroker } from "@herald/testing";
import type { ServiceName, System } from "../../harness/system.ts";
import { startWebhookReceiver } from "../../harness/webhook-receiver.ts";
import { type Findings, NotHere, type Row } from "../row.ts";
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

export const rotate: Row = {
  name: "rotate",
  fault:
    "all keys of all services are rotated under load: the new one second, then first, then alone where it may be; kill -9 of analytics twice at each step",
  pass: "no send is refused but with 503 and Retry-After, opens of earlier pushes count, credentials are still read, each event comes by webhook with its signature, 0 errors",
  run: async ({ start, defer }) => {
    let step = -1;
    const system = await start({
      startedFrom: (_, usual) => {
        const rings = Object.entries(usual.env).filter(([name]) => name.endsWith("_KEYS"));
        const change = steps[step];
        const changed = rings.map(([name, ring]) => [name, change?.(ring ?? "", name) ?? ring]);
        return { ...usual, env: { ...usual.env, ...Object.fromEntries(changed) } };
      },
    });
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    const receiver = await startWebhookReceiver(() => 204);
    defer(receiver.stop);
    const body = { webhook: { url: receiver.urlOf("/rotated") } };
    const { secret } = expectStatus(await trial.project.call("POST /webhooks", { body }), 201).body;
    receiver.expectSecret("/rotated", secret);
    const [before] = await idsIn(system);
    const expected = [[`${before},next`], [`next,${before}`], ["next", `next,${before}`]];
    for (step = 0; step < steps.length; step++) {
      for (const name of names) {
        await trial.broadcast();
        await system.services[name].kill(name === "analytics" ? "SIGKILL" : "SIGTERM");
        // In the middle of its start, when it encrypts stored secrets with the first key.
        if (name === "analytics") await system.services.analytics.kill("SIGKILL");
        await system.services[name].ready();
        await trial.recovered();
      }
      await eventually(
        async () => {
          const found = await idsIn(system);
          if (found.join(" ") !== expected[step]?.join(" "))
            throw new Error(`step ${step + 1}: keys are ${found.join(" ")}`);
        },
        // The status takes a replica that was killed for a live one for 20 s.
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
  fault: "the passwords of all NATS users change under load, and the services restart with the new ones",
  pass: "sends are refused with 503 and Retry-After until then, and none is lost; the services log in with the new ones alone",
  run: async ({ start, brokerSource }) => {
    if (brokerSource.kind !== "binary") throw new NotHere(`brokers are not processes here: ${brokerSource.kind}`);
    let broker: Broker | undefined;
    const system = await start({
      broker: async () => {
        broker = await startBroker({ syncAlways: true }, brokerSource);
        return broker;
      },
      startedFrom: (name, usual) => ({ ...usual, env: { ...usual.env, ...broker?.loginOf(name) } }),
    });
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    for (let round = 0; round < 2; round++) {
      await trial.broadcastUnderWay();
      const begun = performance.now();
      await system.broker.changePasswords?.();
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
  fault: "the database's password changes under load, all connections break, and the services restart with the new one",
  pass: "sends are answered 202 or 503, and none is lost; services that know only the old password wait",
  run: async (stage) => {
    let password = somePassword();
    const server = await startDatabase(stage, password);
    if (server.setPassword === undefined) throw new NotHere("the database here asks for no password");
    const system = await stage.start({
      mongoUrl: server.url,
      startedFrom: (_, usual) => {
        const url = usual.env.HERALD_MONGO_URL?.replace(/:\w+@/, `:${password}@`);
        return { ...usual, env: { ...usual.env, ...(url && { HERALD_MONGO_URL: url }) } };
      },
    });
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    for (let round = 0; round < 2; round++) {
      await trial.broadcastUnderWay();
      const next = somePassword();
      await server.setPassword(next);
      // Open connections would go on.
      await system.database.cut();
      await system.database.heal();
      await trial.broadcast();
      await expectRefused(system);
      password = next;
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
