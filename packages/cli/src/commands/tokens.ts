import type { ProjectToken } from "@herald/client";
import type { Command } from "commander";
import { choices } from "../choices.ts";
import type { ListChoice } from "../context.ts";
import { type Add, listOptions, option, repeated } from "../define.ts";

type Scope = (typeof choices.scope)[number];

const columns = [
  { title: "ID", value: ({ id }: ProjectToken) => id },
  { title: "NAME", value: ({ name }: ProjectToken) => name },
  { title: "SCOPES", value: ({ scopes }: ProjectToken) => scopes },
  { title: "EXPIRES", value: ({ expires_at }: ProjectToken) => expires_at },
];

export const addTokens = (group: Command, add: Add) => {
  add<{ name: string; scope?: Scope[]; expires?: string }>(group, {
    usage: "create",
    does: "Create a project token and show it, only this once",
    options: [
      option("--name <name>", "name of the token, such as its user").makeOptionMandatory(),
      repeated("--scope <scope>", "what it may do; repeatable (default: all but export)", choices.scope),
      option("--expires <time>", "expiry time, such as 2030-01-31T09:00:00Z"),
    ],
    examples: [["token create --name mailer --scope send", "for a program that only sends"]],
    run: async ({ admin, project, signal, record }, _, { name, scope: scopes, expires }) => {
      const { projectToken, token } = await admin().tokens.create(
        project(),
        { name, scopes, expires_at: expires },
        { signal },
      );
      record({ ...projectToken, token }, [
        ["id", projectToken.id],
        ["name", projectToken.name],
        ["scopes", projectToken.scopes],
        ["expires", projectToken.expires_at],
        ["token", token ?? "was in an answer that got lost: revoke it, and create another"],
      ]);
    },
  });
  add<ListChoice>(group, {
    usage: "list",
    does: "List the project's tokens, without their secrets",
    options: listOptions,
    run: ({ admin, project, signal, rows }, _, choice) =>
      rows(admin().tokens.list(project(), { signal }), columns, choice),
  });
  add(group, {
    usage: "revoke <id>",
    does: "Refuse a token everywhere, within a second",
    run: async ({ admin, project, signal, result }, [id = ""]) => {
      await admin().tokens.revoke(project(), id, { signal });
      result({ revoked: id }, () => `Revoked ${id}.`);
    },
  });
};
