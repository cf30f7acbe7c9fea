import { readFile } from "node:fs/promises";
import { Herald, HeraldAdmin, HeraldError } from "@herald/client";
import type { Command } from "commander";
import { type Add, option } from "../define.ts";
import { UsageError } from "../failures.ts";
import { type Profile, saveProfile } from "../profiles.ts";

const localFile = ".herald/local.json";

/** The addresses and tokens that `npm start` writes to disk. */
const readLocal = async (): Promise<Profile> => {
  const text = await readFile(localFile, "utf8").catch(() => {
    throw new UsageError(`There is no ${localFile} here.`, "Run this in Herald's folder while `npm start` is running.");
  });
  const { gateway, adminToken, project } = JSON.parse(text);
  return { url: gateway, token: project.token, admin_token: adminToken, project: project.id };
};

/** Throws if Herald does not know the token. A 403 means that it does. */
const check = async (call: Promise<unknown>, what: string): Promise<void> => {
  await call.catch((error: unknown) => {
    if (!(error instanceof HeraldError)) throw error;
    if (error.status === 401) throw new HeraldError(error.slug, `Herald does not know this ${what}.`, { status: 401 });
    if (error.status !== 403) throw error;
  });
};

export const addLogin = (program: Command, add: Add) =>
  add<{ local?: boolean }>(program, {
    usage: "login",
    does: "Save Herald's address and your tokens as a profile",
    options: [option("--local", "use the system that `npm start` runs in this folder")],
    examples: [
      ["login --local", "sign in to the system that npm start runs here"],
      ["login --url https://herald.example.com --profile production", "prompts for the tokens without echoing them"],
    ],
    run: async ({ settings, terminal, env, signal, profileName, ask, result }, _, { local }) => {
      const given = local ? await readLocal() : settings;
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
