import { type Herald, HeraldError, type Project, type ProviderSettings, type SystemStatus } from "@herald/client";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import type { Add } from "../define.ts";
import { exitCodes } from "../failures.ts";
import { plain } from "../terminal/text.ts";
import { pauseInWords } from "./pauses.ts";

type Finding = {
  readonly check: string;
  readonly state: "ok" | "problem" | "skipped";
  readonly found: string;
  /** How to fix it. */
  readonly fix?: string | undefined;
};

const timeoutMs = 5_000;
/** Stricter than the limits: webhooks tolerate five minutes of skew, user tokens one. */
const maxClockSeconds = 30;

const ok = (check: string, found: string): Finding => ({ check, state: "ok", found });
const skipped = (check: string, found: string): Finding => ({ check, state: "skipped", found });
const problem = (check: string, found: string, fix: string): Finding => ({ check, state: "problem", found, fix });

const fetchFrom = ({ settings: { url = "" }, signal }: Context, path: string): Promise<Response> =>
  fetch(url.replace(/\/+$/, "") + path, { signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) });

/** Checks the address, the clock and readiness. */
async function* gateway(context: Context): AsyncGenerator<Finding> {
  const url = context.url();
  const asked = Date.now();
  const response = await fetchFrom(context, "/readyz").catch((error: unknown) => error as Error);
  context.signal.throwIfAborted();
  if (response instanceof Error) {
    const cause =
      response.cause instanceof Error
        ? response.cause.message || String((response.cause as { code?: string }).code)
        : response.message;
    yield problem(
      "url",
      `${url} does not answer: ${cause}`,
      "Start Herald (`npm start`), or correct --url, HERALD_URL or the profile's url.",
    );
    return;
  }
  const body = (await response.json().catch(() => undefined)) as
    | { status?: string; failing?: { check: string; reason: string; since: string }[] }
    | undefined;
  if (body?.status === undefined) {
    yield problem(
      "url",
      `${url} answers, but it is not Herald's gateway (${response.status})`,
      "Correct the url: it is the gateway's, without /api/v1.",
    );
    return;
  }
  yield ok("url", `${url} is a gateway of Herald's`);
  const date = Date.parse(response.headers.get("date") ?? "");
  const off = Math.round((asked - date) / 1_000);
  yield Number.isNaN(date)
    ? skipped("clock", "Herald's answer has no time")
    : Math.abs(off) <= maxClockSeconds
      ? ok("clock", "this machine and Herald agree on the time")
      : problem(
          "clock",
          `this machine is ${Math.abs(off)} s ${off > 0 ? "ahead of" : "behind"} Herald`,
          "Synchronise both clocks (NTP): user tokens and webhooks depend on them.",
        );
  if (body.status === "ready") yield ok("readiness", "the gateway is ready");
  for (const { check, reason, since } of body.failing ?? [])
    yield problem(
      "readiness",
      `${check}: ${reason}, since ${since}`,
      `Look at ${check} and at the gateway's log; it recovers by itself.`,
    );
}

const explain = (check: string, error: unknown, refused: string): Finding => {
  if (!(error instanceof HeraldError)) throw error;
  if (error.status === 403) return ok(check, `is valid, without the scope to look closer`);
  const fix = error.status === 401 ? refused : "Try again when Herald is ready.";
  return problem(check, error.errors.join("; "), fix);
};

async function* project(herald: Herald): AsyncGenerator<Finding> {
  try {
    const { pagination } = await herald.devices.list({ perPage: 1, status: "active" }).page();
    yield ok("token", `is valid; the project has ${pagination.count} active devices`);
  } catch (error) {
    yield explain("token", error, "Create another: `herald token create --name …`, then `herald login`.");
    return;
  }
  for await (const webhook of herald.webhooks.list())
    if (!webhook.enabled || webhook.failing_since !== undefined)
      yield problem(
        "webhooks",
        `${webhook.url} ${webhook.enabled ? `fails since ${webhook.failing_since}` : `is disabled: ${webhook.disabled_reason}`}`,
        `\`herald webhook messages ${webhook.id} --status failed\` says why; then \`herald webhook enable\` and \`recover\`.`,
      );
}

/** The share from which a queue is reported: Herald refuses sends when a work queue is full. */
const fullShare = 0.8;

const fixes: Readonly<Record<string, string>> = {
  bus: "Start the broker, or correct HERALD_NATS_URL of that service; it reconnects by itself.",
  database: "Start the database, or correct HERALD_MONGO_URL of that service; it reconnects by itself.",
  consumers: "Run the bootstrap step.",
};

const secondsBetween = (earlier: string, later: string): number =>
  Math.max(0, Math.round((Date.parse(later) - Date.parse(earlier)) / 1_000));

/** Checks the broker, the services, their databases and all projects' providers, as the gateway last heard of them. */
function* system({ at, broker, services, streams, providers }: SystemStatus): Generator<Finding> {
  yield broker.available
    ? ok("broker", "the gateway is connected")
    : problem("broker", broker.reason ?? "it is unavailable", fixes.bus ?? "");
  const databases: number[] = [];
  for (const { name, replicas, state } of services) {
    if (replicas.length === 0)
      yield problem(
        name,
        "no replica reports",
        `Start ${name}; if it runs, look at its log, and run the bootstrap step if this version is new.`,
      );
    for (const { instance, state: is, failing, last_seen_at, database_ms } of replicas) {
      if (database_ms !== undefined) databases.push(database_ms);
      if (is === "not_answering")
        yield problem(
          name,
          `${instance} has not reported since ${last_seen_at}`,
          "It crashed, hangs or lost the broker. Check its log. It stays listed for ten minutes.",
        );
      else
        for (const { check, reason, since } of failing)
          yield problem(
            name,
            `${instance}: ${reason}, since ${since}; it reported this ${secondsBetween(last_seen_at, at)} s ago`,
            fixes[check] ?? `Look at the log of ${name}.`,
          );
    }
    if (state === "ready" && replicas.every((replica) => replica.state === "ready")) {
      const oldest = Math.max(...replicas.map(({ last_seen_at }) => secondsBetween(last_seen_at, at)));
      const ready = replicas.length === 1 ? "one replica is" : `${replicas.length} replicas are`;
      const proxies = new Set(replicas.flatMap(({ proxy }) => proxy ?? []));
      const through = proxies.size === 0 ? "" : `; reaches servers elsewhere through ${[...proxies].join(" and ")}`;
      yield ok(name, `${ready} ready, as reported ${oldest} s ago${through}`);
    }
  }
  if (databases.length > 0) yield ok("database", `answers its services in ${Math.max(...databases)} ms or less`);
  for (const { name, bytes, max_bytes } of streams)
    if (max_bytes > 0 && bytes > fullShare * max_bytes && name.match(/EVENTS|DLQ|SCHEDULE/) === null)
      yield problem(
        "streams",
        `${name} is ${Math.round((100 * bytes) / max_bytes)} % full`,
        "Its service is too slow. Add replicas, or check what it waits for. Sends are refused when a stream is full.",
      );
  for (const { project_id, provider, state, reason, host } of providers)
    yield problem(
      "providers",
      `${provider} of ${project_id} is ${state}: ${[reason, host].filter(Boolean).join(" at ")}`,
      `\`herald provider get ${provider} --project ${project_id}\` says more.`,
    );
}

const sends = ({ paused }: Pick<Project, "paused">): Finding[] =>
  paused === undefined
    ? []
    : [
        problem(
          "sends",
          `of ${paused.of === "installation" ? "all projects" : "the project"} are paused ${pauseInWords(paused)}`,
          `\`herald ${paused.of} resume\` sends what waits.`,
        ),
      ];

async function* operations(context: Context): AsyncGenerator<Finding> {
  const { settings } = context;
  const admin = context.admin();
  try {
    await admin.projects.list({ perPage: 1 }).page();
    yield ok("admin token", "is valid");
  } catch (error) {
    yield explain("admin token", error, "It is HERALD_ADMIN_TOKEN of the gateway's environment.");
    return;
  }
  yield* await admin.status().then(
    (status) => [...system(status)],
    (error: unknown) => [explain("status", error, "Upgrade the gateway: it has no status yet.")],
  );
  yield* await admin.installation.get().then(sends, (error: unknown) => [explain("sends", error, "")]);
  const { pagination } = await admin.deadLetters.list({ perPage: 1 }).page();
  yield pagination.count === 0
    ? ok("dead letters", "there are none")
    : problem(
        "dead letters",
        `there are ${pagination.count}`,
        "`herald dead-letters list` says why; `herald dead-letters replay` tries again.",
      );
  if (settings.project === undefined) return yield skipped("providers", "no --project to look at");
  // A project that does not exist is reported with its providers.
  const own = await admin.projects.get(settings.project).catch(() => undefined);
  if (own?.paused?.of === "project") yield* sends(own);
  for (const name of ["apns", "fcm", "webpush"] satisfies (keyof ProviderSettings)[]) {
    try {
      const { status, paused_reason, paused_detail, problems = [] } = await admin.providers.get(settings.project, name);
      if (status === "paused")
        yield problem(
          name,
          `is paused: ${paused_reason}`,
          `${paused_detail ?? ""} \`herald provider set ${name} …\` resumes it, and so does a waiting push that is accepted.`,
        );
      for (const { reason, host, detail } of problems)
        yield problem(name, [reason, host].filter(Boolean).join(" at "), detail);
      if (status !== "paused" && problems.length === 0) yield ok(name, "is set, without known problems");
    } catch (error) {
      if (!(error instanceof HeraldError)) throw error;
      yield error.slug === "provider-not-found"
        ? skipped(name, `is not set: \`herald provider set ${name} --help\``)
        : problem(name, error.errors.join("; "), "Check --project, HERALD_PROJECT or the profile's project.");
    }
  }
}

async function* examine(context: Context): AsyncGenerator<Finding> {
  const { settings } = context;
  if (settings.url === undefined)
    return yield problem(
      "url",
      "is not set",
      "`herald login` sets it, or --url, or HERALD_URL. In a clone, run `npm start`.",
    );
  let answers = false;
  for await (const finding of gateway(context)) {
    answers ||= finding.check === "url" && finding.state === "ok";
    yield finding;
  }
  if (!answers) return;
  if (settings.token === undefined) yield skipped("token", "none is set: `herald login`, --token or HERALD_TOKEN");
  else yield* project(context.herald());
  if (settings.admin_token === undefined)
    yield skipped("admin token", "none is set; providers and dead letters need it");
  else yield* operations(context);
}

const marks = { ok: ["green", "✓"], problem: ["red", "✗"], skipped: ["dim", "–"] } as const;

export const addDoctor = (program: Command, add: Add) =>
  add(
    program,
    "doctor",
    "Check the address, tokens, clock, readiness, services, broker, database, webhooks and providers, say what is wrong and how to fix it",
    async (context) => {
      const { terminal, json } = context;
      const findings: Finding[] = [];
      for await (const finding of examine(context)) {
        findings.push(finding);
        if (json) continue;
        const [color, mark] = marks[finding.state];
        terminal.print(
          `${terminal.paint(color, mark)} ${terminal.paint("bold", finding.check)} ${plain(finding.found)}`,
        );
        if (finding.fix !== undefined) terminal.print(`    ${plain(finding.fix)}`);
      }
      const problems = findings.filter(({ state }) => state === "problem").length;
      await context.result(findings, () =>
        problems === 0 ? "All is well." : `Found ${problems === 1 ? "one problem" : `${problems} problems`}.`,
      );
      return problems === 0 ? exitCodes.ok : exitCodes.failed;
    },
  );
