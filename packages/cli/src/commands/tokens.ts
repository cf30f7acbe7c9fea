import type { ProjectToken } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import { type Add, listOptions, option, repeatable } from "../define.ts";
import { columnsFor, titled } from "../terminal/table.ts";

type Scope = (typeof knownValues.scope)[number];

const columns = columnsFor<ProjectToken>("id", "name", "scopes", "expires_at");

export const addTokens = (group: Command, add: Add) => {
  add<{ name: string; scope?: Scope[]; expires?: string }>(group, {
    usage: "create",
    does: "Create a project token and show it, only this once",
    options: [
      option("--name <name>", "name of the token, such as its user").makeOptionMandatory(),
      repeatable("--scope <scope>", "what it may do; repeatable (default: all but export)", knownValues.scope),
      option("--expires <time>", "expiry time, such as 2030-01-31T09:00:00Z"),
    ],
    examples: [["token create --name mailer --scope send", "for a program that only sends"]],
    run: async ({ admin, project, record }, _, { name, scope: scopes, expires }) => {
      const { projectToken, token } = await admin().tokens.create(project(), { name, scopes, expires_at: expires });
      await record({ ...projectToken, token }, () => [
        ...titled(projectToken, "id", "name", "scopes", "expires_at"),
        ["token", token ?? "was in an answer that got lost: revoke it, and create another"],
      ]);
    },
  });
  add<ListChoice>(group, {
    usage: "list",
    does: "List the project's tokens, without their secrets",
    options: listOptions,
    run: ({ admin, project, rows }, _, choice) => rows(admin().tokens.list(project()), columns, choice),
  });
  add(
    group,
    "revoke <id>",
    "Refuse a token everywhere, within a second",
    async ({ admin, project, result }, [id = ""]) => {
      await admin().tokens.revoke(project(), id);
      await result({ revoked: id }, () => `Revoked ${id}.`);
    },
  );
};
