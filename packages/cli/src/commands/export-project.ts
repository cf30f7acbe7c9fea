import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { toProjectFile } from "../apply/from-state.ts";
import { readProjectState } from "../apply/read-project-state.ts";
import { type Add, option } from "../define.ts";
import { UsageError } from "../failures.ts";

const everything = { limits: true, kinds: true, providers: true, tokens: true, webhooks: true };

export const addExportProject = (group: Command, add: Add) => {
  add<{ file?: string }>(group, {
    usage: "export [id]",
    does: "Write a project to a file that `herald apply` reads, without secrets (default: the profile's)",
    options: [option("-f, --file <file>", "a new file, or - for stdout (default: <key>.yaml)")],
    examples: [["project export", "then keep the file with the code, and change it there"]],
    run: async (context, [id = context.project()], options) => {
      const admin = context.admin();
      const project = await admin.projects.get(id);
      if (project.key === undefined)
        throw new UsageError(
          `The project ${project.name} has no key, which the file needs.`,
          `\`herald project update ${id} --key shop\` gives it one. It never changes.`,
        );
      const { text, files } = toProjectFile(await readProjectState(admin, context.heraldOf, project, everything));
      const { file = `${project.key}.yaml` } = options;
      if (file === "-") return context.terminal.print(text.trimEnd());
      await writeFile(file, text, { flag: "wx" });
      await context.result({ file, secrets: files }, () => {
        const needed = files.length === 0 ? "" : ` Put the files of its secrets beside it: ${files.join(", ")}.`;
        return `Wrote ${file}.${needed} \`herald apply -f ${file} --check\` compares.`;
      });
    },
  });
};
