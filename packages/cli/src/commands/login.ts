import { Herald, HeraldAdmin, HeraldError } from "@herald/client";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { type Add, option } from "../define.ts";
import { UsageError } from "../failures.ts";
import { findLocalSystem } from "../local-system.ts";
import { type Environment, type Profile, saveProfile } from "../profiles.ts";

const readLocal = async (env: Environment): Promise<Profile> => {
  const local = await findLocalSystem(env);
  if (local) return local;
  const file = env.HERALD_DATA_DIR ? "local.json in HERALD_DATA_DIR" : ".herald/local.json here";
  throw new UsageError(`There is no ${file}.`, "Run this in Herald's folder while `npm start` is running.");
};

/** Throws if Herald does not know the token. A 403 means that it does. */
const check = async (call: Promise<unknown>, what: string): Promise<void> => {
  await call.catch((error: unknown) => {
    if (!(error instanceof HeraldError)) throw error;
    if (error.status === 401) throw new HeraldError(error.slug, `Herald does not know this ${what}.`, { status: 401 });
    if (error.status !== 403) throw error;
  });
};

/** Signs in at the identity provider: the console shows a code, which becomes a bearer. */
const signInByCompany = async ({
  given,
  terminal,
  ask,
  signal,
}: Context): Promise<{ url: string; bearer: string; ends: string }> => {
  const { url } = given;
  if (url === undefined) throw new UsageError("Signing in needs Herald's address.", "Give it as --url.");
  const { sessions } = new HeraldAdmin({ url, session: {} });
  if (!terminal.canAsk) throw new UsageError("--sso asks for a code.", "Run it in a terminal.");
  const begin = `${url.replace(/\/+$/, "")}/admin/v1/sign-in/oidc?return_to=/console/sign-in-code`;
  terminal.print(`Open this address in a browser, sign in, and copy the code that it shows:\n${begin}`);
  const code = (await ask("Code (hoc_…): ", true)).trim();
  const { session, token } = await sessions.createBearer(code, { signal });
  if (token === undefined) throw new UsageError("The answer with the session got lost.", "Run this again.");
  return { url, bearer: token, ends: session.expires_at };
};

export const addLogin = (program: Command, add: Add) =>
  add<{ local?: boolean; sso?: boolean }>(program, {
    usage: "login",
    does: "Save Herald's address and your tokens as a profile",
    options: [
      option("--local", "use the system that `npm start` runs in this folder"),
      option("--sso", "sign in with your company's identity provider, in a browser"),
    ],
    examples: [
      ["login --local", "sign in to the system that npm start runs here"],
      ["login --url https://herald.example.com --profile production", "prompts for the tokens without echoing them"],
      ["login --sso --url https://herald.example.com", "signs you in by your company, for hours"],
    ],
    run: async (context, _, { local, sso }) => {
      const { terminal, env, signal, profileName, ask, result } = context;
      if (sso) {
        const { url, bearer, ends } = await signInByCompany(context);
        const { token, project } = context.given;
        const profile = { url, token, admin_token: bearer, project };
        const file = await saveProfile(env, profileName, profile);
        return result(
          { profile: profileName, file, url, expires_at: ends },
          () =>
            `${terminal.paint("green", "Signed in")} to ${url} until ${ends} as profile ${profileName}, in ${file}.`,
        );
      }
      const given = local ? await readLocal(env) : context.given;
      const want = async (value: string | undefined, question: string, secret: boolean): Promise<string | undefined> =>
        value ?? (terminal.canAsk ? (await ask(question, secret)).trim() || undefined : undefined);
      const url = await want(given.url, "Herald's address: ", false);
      const token = await want(given.token, "Project token (hpt_…, empty for none): ", true);
      const adminToken = await want(given.admin_token, "Admin token (empty for none): ", true);
      if (url === undefined) throw new UsageError("A profile needs Herald's address.", "Give it as --url.");
      if (token === undefined && adminToken === undefined)
        throw new UsageError(
          "A profile needs a token.",
          "Set HERALD_TOKEN or HERALD_ADMIN_TOKEN, or run this in a terminal.",
        );
      if (token !== undefined)
        await check(new Herald({ url, token }).devices.list({ perPage: 1, signal }).page(), "project token");
      if (adminToken !== undefined)
        await check(
          new HeraldAdmin({ url, token: adminToken }).projects.list({ perPage: 1, signal }).page(),
          "admin token",
        );
      const profile = { url, token, admin_token: adminToken, project: given.project };
      const file = await saveProfile(env, profileName, profile);
      await result({ profile: profileName, file, url, project: given.project }, () =>
        [
          `${terminal.paint("green", "Signed in")} to ${url} as profile ${profileName}, in ${file}.`,
          token === undefined
            ? "Next: `herald project create --name …` creates a project and its first token."
            : "Next: `herald send --title Hello --to all --dry-run`.",
        ].join("\n"),
      );
    },
  });
