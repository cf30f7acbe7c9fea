import { Herald, HeraldAdmin, type KeysetList } from "@herald/client";
import { UsageError } from "./failures.ts";
import { findLocalSystem } from "./local-system.ts";
import { defaultProfile, type Environment, type Profile, readProfiles } from "./profiles.ts";
import { createTable, fields, type TableColumn } from "./terminal/table.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { formatNumber, toJson } from "./terminal/text.ts";

/** The options that every command has. */
export type GlobalOptions = {
  readonly url?: string;
  readonly token?: string;
  readonly adminToken?: string;
  readonly project?: string;
  readonly profile?: string;
  readonly json?: boolean;
  readonly color?: boolean;
  readonly retries?: number;
  readonly timeout?: number;
};

export type ListChoice = { readonly limit?: number; readonly all?: boolean };

export type Entries = readonly (readonly [name: string, value: unknown])[];

type Deps = {
  readonly terminal: Terminal;
  /** For results that are not lines of text. */
  readonly stdout: NodeJS.WriteStream;
  readonly env: Environment;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** Takes the sentence that Ctrl-C prints. */
  readonly onInterrupt: (sentence: string) => void;
  /** Takes the sentence that Ctrl-C and later failures print: what Herald continues, and how to resume. */
  readonly onStop: (sentence: string) => void;
  /** Prompts at the terminal; a secret is not echoed. */
  readonly ask: (question: string, secret?: boolean) => Promise<string>;
};

export const defaultLimit = 20;
/** Users do not mind shorter waits, so they get no message. */
const waitingMs = 2_000;

const signIn =
  "`herald login` saves it in a profile; flags and the environment go before profiles. In a clone, the system that `npm start` runs is used without either.";

/** The context that every command gets. */
export const createContext = async (options: GlobalOptions, deps: Deps) => {
  const { terminal, env, signal } = deps;
  const profileName = options.profile ?? env.HERALD_PROFILE ?? defaultProfile;
  const profiles = await readProfiles(env);
  const asked = options.profile ?? env.HERALD_PROFILE;
  const profile = profiles[profileName];
  if (asked !== undefined && profile === undefined && options.url === undefined)
    throw new UsageError(
      `There is no profile ${asked}; there ${Object.keys(profiles).length === 0 ? "is none" : `are ${Object.keys(profiles).join(", ")}`}.`,
      `\`herald login --profile ${asked}\` makes it.`,
    );
  const givenUrl = options.url ?? env.HERALD_URL ?? profile?.url;
  const local = givenUrl === undefined && asked === undefined ? await findLocalSystem(env) : undefined;
  /** Flags take precedence over environment variables, which take precedence over the profile. */
  const given: Profile = {
    url: givenUrl,
    token: options.token ?? env.HERALD_TOKEN ?? profile?.token,
    admin_token: options.adminToken ?? env.HERALD_ADMIN_TOKEN ?? profile?.admin_token,
    project: options.project ?? env.HERALD_PROJECT ?? profile?.project,
  };
  /** A local system fills in what nothing else gives, but only where its address is used. */
  const settings: Profile = local
    ? {
        url: local.url,
        token: given.token ?? local.token,
        admin_token: given.admin_token ?? local.admin_token,
        project: given.project ?? local.project,
      }
    : given;
  const json = options.json === true;
  /** `fetch` with a progress line if the answer takes long. */
  const patientFetch: typeof fetch = async (...call) => {
    const timer = setTimeout(() => terminal.progress(`Waiting for ${settings.url}…`), waitingMs);
    try {
      return await fetch(...call);
    } finally {
      clearTimeout(timer);
    }
  };
  const { retries: maxRetries, timeout } = options;
  const calls = {
    fetch: patientFetch,
    signal,
    maxRetries,
    timeoutMs: timeout === undefined ? timeout : timeout * 1_000,
  };
  const needs = (name: keyof Profile, what: string, flag: string): string => {
    const value = settings[name];
    if (value !== undefined && value !== "") return value;
    throw new UsageError(`This needs ${what}: ${flag} or HERALD_${name.toUpperCase()}.`, signIn);
  };
  let said = json;
  /** Says once which system is used if nothing names it. */
  const url = () => {
    if (local && !said) terminal.note(`Using ${local.url}, which \`npm start\` runs (${local.file}).`);
    said = true;
    return needs("url", "Herald's address", "--url");
  };
  const printJson = (value: unknown) => terminal.print(toJson(value, 2));

  /** Prints JSON with --json, otherwise text. */
  const result = async <Value>(value: Value | Promise<Value>, words: (value: Value) => string): Promise<void> => {
    const found = await value;
    if (json) printJson(found);
    else terminal.print(words(found));
  };

  const jsonRows = async (pages: AsyncIterable<unknown[]>) => {
    let written = 0;
    for await (const page of pages)
      for (const row of page) terminal.print(`${written++ === 0 ? "[" : ","}${toJson(row)}`);
    terminal.print(written === 0 ? "[]" : "]");
  };

  /** Reads pages until `most` rows were read. */
  async function* limited<Row>(list: KeysetList<Row>, most: number) {
    let shown = 0;
    for await (const page of list.pages()) {
      const rows = page.slice(0, most - shown);
      shown += rows.length;
      yield rows;
      if (rows.length < page.length)
        terminal.note(`Showing the first ${formatNumber(shown)}. --all shows all, --limit more.`);
      if (shown >= most) return;
      // The rows go into a file or a pipe.
      if (!terminal.isTerminal) terminal.progress(`${formatNumber(shown)} rows…`);
    }
    terminal.progress();
  }

  return {
    ...deps,
    json,
    settings,
    /** `settings` without those of a local system. */
    given,
    url,
    profileName,
    // These throw a UsageError if the token or project is missing.
    herald: () => new Herald({ url: url(), token: needs("token", "a project token", "--token"), ...calls }),
    admin: () =>
      new HeraldAdmin({ url: url(), token: needs("admin_token", "the admin token", "--admin-token"), ...calls }),
    /** The client of a project that the admin token acts for. */
    heraldOf: (project: string) =>
      new Herald({ url: url(), token: needs("admin_token", "the admin token", "--admin-token"), project, ...calls }),
    project: () => needs("project", "a project's id", "--project"),
    result,
    /** Like `result`, but prints names and values. */
    record: <Value>(value: Value | Promise<Value>, entries: (value: Value) => Entries) =>
      result(value, (found) => fields(entries(found), terminal)),
    rows: async <Row>(
      list: KeysetList<Row>,
      columns: readonly TableColumn<Row>[],
      { all, limit = defaultLimit }: ListChoice,
    ): Promise<void> => {
      const pages = limited(list, all ? Number.POSITIVE_INFINITY : limit);
      if (json) return jsonRows(pages);
      const table = createTable(columns, terminal);
      let shown = 0;
      for await (const rows of pages) {
        if (rows.length > 0) terminal.print(table(rows).join("\n"));
        shown += rows.length;
      }
      if (shown === 0) terminal.note("There are none.");
    },
    /** Throws unless --yes is given or the person at the terminal types yes. */
    confirm: async (question: string, yes: boolean | undefined): Promise<void> => {
      if (yes) return;
      if (!terminal.canAsk) throw new UsageError(`${question} This is not a terminal, so it cannot ask.`, "Add --yes.");
      const answer = await deps.ask(`${question} Type yes: `);
      if (answer.trim() !== "yes") throw new UsageError("Nothing was done.");
    },
  };
};

export type Context = Awaited<ReturnType<typeof createContext>>;
