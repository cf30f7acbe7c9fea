import { Herald, HeraldAdmin, type KeysetList } from "@herald/client";
import { UsageError } from "./failures.ts";
import { defaultProfile, type Profile, readProfiles } from "./profiles.ts";
import { type Column, createTable, fields } from "./terminal/table.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { count } from "./terminal/text.ts";

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

/** What every command gets. */
export type Context = {
  readonly terminal: Terminal;
  /** For results that are not lines of text. */
  readonly stdout: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly json: boolean;
  /** Flags take precedence over the environment, and that over the profile. */
  readonly settings: Profile;
  readonly profileName: string;
  /** These throw a UsageError if the token or project is missing. */
  herald(): Herald;
  admin(): HeraldAdmin;
  project(): string;
  /** The sentence that Ctrl-C prints. */
  onInterrupt(sentence: string): void;
  /** The sentence that Ctrl-C and a failure print, once something was done: what continues, and how to resume. */
  onStop(sentence: string): void;
  /** Prompts at the terminal; a secret is not echoed. */
  ask(question: string, secret?: boolean): Promise<string>;
  /** Prints the result: JSON with --json, else text. */
  result(value: unknown, words: () => string): void;
  record(value: unknown, entries: readonly (readonly [string, unknown])[]): void;
  rows<Row>(list: KeysetList<Row>, columns: readonly Column<Row>[], choice: ListChoice): Promise<void>;
  /** Throws unless --yes is given or the person at the terminal types yes. */
  confirm(question: string, yes: boolean | undefined): Promise<void>;
};

type Deps = {
  readonly terminal: Terminal;
  readonly stdout: NodeJS.WriteStream;
  readonly env: Context["env"];
  readonly signal: AbortSignal;
  readonly onInterrupt: (sentence: string) => void;
  readonly onStop: (sentence: string) => void;
  readonly ask: Context["ask"];
};

export const defaultLimit = 20;
/** Sooner, a person does not wonder what it does. */
const waitingMs = 2_000;

const signIn = "`herald login` saves it in a profile; flags and the environment go before profiles.";

export const createContext = async (options: GlobalOptions, deps: Deps): Promise<Context> => {
  const { terminal, stdout, env, signal } = deps;
  const profileName = options.profile ?? env.HERALD_PROFILE ?? defaultProfile;
  const profiles = await readProfiles(env);
  const asked = options.profile ?? env.HERALD_PROFILE;
  const profile = profiles[profileName];
  if (asked !== undefined && profile === undefined && options.url === undefined)
    throw new UsageError(
      `There is no profile ${asked}; there ${Object.keys(profiles).length === 0 ? "is none" : `are ${Object.keys(profiles).join(", ")}`}.`,
      `\`herald login --profile ${asked}\` makes it.`,
    );
  const settings: Profile = {
    url: options.url ?? env.HERALD_URL ?? profile?.url,
    token: options.token ?? env.HERALD_TOKEN ?? profile?.token,
    admin_token: options.adminToken ?? env.HERALD_ADMIN_TOKEN ?? profile?.admin_token,
    project: options.project ?? env.HERALD_PROJECT ?? profile?.project,
  };
  const json = options.json === true;
  /** Says at the terminal that an answer takes long. */
  const patientFetch: typeof fetch = async (...call) => {
    const timer = setTimeout(() => terminal.progress(`Waiting for ${settings.url}…`), waitingMs);
    try {
      return await fetch(...call);
    } finally {
      clearTimeout(timer);
    }
  };
  const { retries: maxRetries, timeout } = options;
  const calls = { fetch: patientFetch, maxRetries, timeoutMs: timeout === undefined ? timeout : timeout * 1_000 };
  const needs = (name: keyof Profile, what: string, flag: string): string => {
    const value = settings[name];
    if (value !== undefined && value !== "") return value;
    throw new UsageError(`This needs ${what}: ${flag} or HERALD_${name.toUpperCase()}.`, signIn);
  };
  const url = () => needs("url", "Herald's address", "--url");
  const printJson = (value: unknown) => terminal.print(JSON.stringify(value, null, 2));

  const jsonRows = async (pages: AsyncIterable<unknown[]>) => {
    let written = 0;
    for await (const page of pages)
      for (const row of page) terminal.print(`${written++ === 0 ? "[" : ","}${JSON.stringify(row)}`);
    terminal.print(written === 0 ? "[]" : "]");
  };

  /** Pages until there are so many rows. */
  async function* limited<Row>(list: KeysetList<Row>, most: number) {
    let shown = 0;
    for await (const page of list.pages()) {
      const rows = page.slice(0, most - shown);
      shown += rows.length;
      yield rows;
      if (rows.length < page.length) terminal.note(`Showing the first ${count(shown)}. --all shows all, --limit more.`);
      if (shown >= most) return;
      // The rows go into a file or a pipe.
      if (!terminal.isTerminal) terminal.progress(`${count(shown)} rows…`);
    }
    terminal.progress();
  }

  return {
    terminal,
    stdout,
    env,
    signal,
    json,
    settings,
    profileName,
    herald: () => new Herald({ url: url(), token: needs("token", "a project token", "--token"), ...calls }),
    admin: () =>
      new HeraldAdmin({ url: url(), token: needs("admin_token", "the admin token", "--admin-token"), ...calls }),
    project: () => needs("project", "a project's id", "--project"),
    onInterrupt: deps.onInterrupt,
    onStop: deps.onStop,
    ask: deps.ask,
    result: (value, words) => (json ? printJson(value) : terminal.print(words())),
    record: (value, entries) => (json ? printJson(value) : terminal.print(fields(entries, terminal))),
    rows: async (list, columns, { all, limit = defaultLimit }) => {
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
    confirm: async (question, yes) => {
      if (yes) return;
      if (!terminal.canAsk) throw new UsageError(`${question} This is not a terminal, so it cannot ask.`, "Add --yes.");
      const answer = await deps.ask(`${question} Type yes: `);
      if (answer.trim() !== "yes") throw new UsageError("Nothing was done.");
    },
  };
};
