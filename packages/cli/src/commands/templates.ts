import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { NewTemplate, PublishedVersion, TemplateSummary } from "@herald/client";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import { type Add, addDelete, listOptions, numberOption, option, repeatable } from "../define.ts";
import { UsageError } from "../failures.ts";
import { readText } from "../read-text.ts";
import { columnsFor } from "../terminal/table.ts";
import { toJson } from "../terminal/text.ts";
import { parseVariables } from "./send.ts";

const templateColumns = columnsFor<TemplateSummary>(
  "name",
  { title: "PUBLISHED", value: ({ published }) => (published === undefined ? "never" : `version ${published}`) },
  { title: "DRAFT", value: ({ changed }) => (changed ? "changed" : "the same") },
);
const versionColumns = columnsFor<PublishedVersion>(
  "version",
  { title: "PUBLISHED", value: ({ published_at: at }) => at },
  { title: "BY", value: ({ author }) => author.name ?? author.id },
);

const readTemplate = async (file: string): Promise<NewTemplate> => {
  try {
    return JSON.parse(await readText(file));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(
      `${file}: must be JSON, such as { "title": "Order {{ order }} has shipped", "variables": { … } }.`,
    );
  }
};

/** A template's file is named after it. */
const nameOf = (file: string): string => basename(file).replace(/\.json$/, "");

export const addTemplates = (group: Command, add: Add) => {
  add<ListChoice>(group, {
    usage: "list",
    does: "List templates",
    options: [...listOptions],
    run: ({ herald, rows }, _, choice) => rows(herald().templates.list(), templateColumns, choice),
  });
  add<{ dir?: string; version?: number }>(group, {
    usage: "pull [names...]",
    does: "Write the drafts of templates to files, <name>.json each; without names, of all",
    options: [
      option("--dir <folder>", "folder of the files (default: this one)"),
      numberOption("--version <number>", "a published version instead of the draft"),
    ],
    examples: [["template pull --dir templates", "write every template, to keep them with the code"]],
    run: async (context, names, { dir = ".", version }) => {
      const { templates } = context.herald();
      const wanted = [...names];
      if (wanted.length === 0) for await (const { name } of templates.list()) wanted.push(name);
      await mkdir(dir, { recursive: true });
      const files: string[] = [];
      for (const name of wanted) {
        const { content } = await templates.get(name, { version });
        const file = join(dir, `${name}.json`);
        await writeFile(file, `${JSON.stringify(content, null, 2)}\n`);
        files.push(file);
      }
      await context.result({ files }, () => (files.length === 0 ? "There are none." : `Wrote ${files.join(", ")}.`));
    },
  });
  add<{ publish?: boolean }>(group, {
    usage: "push <files...>",
    does: "Store files as drafts, each under the name of its file",
    options: [option("--publish", "publish them too")],
    examples: [["template push templates/*.json --publish", "let sends use what is in the files"]],
    run: async (context, files, { publish }) => {
      const { templates } = context.herald();
      const pushed: { name: string; published?: number }[] = [];
      for (const file of files) {
        const name = nameOf(file);
        await templates.put(name, await readTemplate(file));
        pushed.push({ name, ...(publish && { published: (await templates.publish(name)).version }) });
      }
      await context.result(pushed, () =>
        pushed
          .map(({ name, published }) =>
            published === undefined ? `Stored the draft of ${name}.` : `Published ${name}, version ${published}.`,
          )
          .join("\n"),
      );
    },
  });
  add(group, "publish <name>", "Let sends use the draft of a template", async (context, [name = ""]) =>
    context.result(context.herald().templates.publish(name), ({ version }) => `Published ${name}, version ${version}.`),
  );
  add<ListChoice>(group, {
    usage: "versions <name>",
    does: "List the published versions of a template, newest first",
    options: [...listOptions],
    run: ({ herald, rows }, [name = ""], choice) => rows(herald().templates.versions(name), versionColumns, choice),
  });
  add<{ var?: string[]; locale?: string; device?: string; version?: number }>(group, {
    usage: "preview <name>",
    does: "Show the payloads of a template's draft",
    options: [
      repeatable("--var <name=value>", "value of a variable; name:=value for a number, true or false; repeatable"),
      option("--locale <locale>", "locale of the device, such as de"),
      option("--device <id>", "device whose values and language are shown"),
      numberOption("--version <number>", "a published version instead of the draft"),
    ],
    run: (context, [name = ""], { var: variables, locale, device, version }) =>
      context.result(
        context.herald().templates.preview(name, { variables: parseVariables(variables), locale, device, version }),
        (preview) =>
          Object.entries(preview)
            .map(([platform, { payload, bytes, problems }]) =>
              [context.terminal.paint("bold", `${platform}, ${bytes} bytes`), ...problems, toJson(payload, 2)].join(
                "\n",
              ),
            )
            .join("\n\n"),
      ),
  });
  addDelete(group, add, {
    usage: "delete <name>",
    does: "Delete a template and its versions",
    question: (name) => `Delete template ${name} and its versions?`,
    run: (context, name) => context.herald().templates.delete(name),
  });
};
