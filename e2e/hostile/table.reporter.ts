import type { Reporter, TestModule } from "vitest/node";
import { machine, readReliability, writeReliability } from "../harness/reliability-page.ts";
import { hostileVariables } from "./scale.ts";

type Line = { readonly attack: string; readonly result: string; readonly at: string };

/** The lines of attacks with one result, under a heading of their own. */
const headingOf = ({ result, at }: Line) => `### ${result[0]?.toUpperCase()}${result.slice(1)} on ${at}`;

const linesOf = (page: string): Line[] =>
  page.split(/^### /m).flatMap((section) => {
    const [, result = "", at = ""] = /^(\w+) on (.+)/.exec(section) ?? [];
    return [...section.matchAll(/^- (.+)$/gm)].map(([, attack = ""]) => ({ attack, result: result.toLowerCase(), at }));
  });

const page = (lines: readonly Line[]) => `## Attacks

Written by \`npm run test:hostile -- --full --write\`, or without \`--full\` where it says short, on ${machine()}. Most files of attacks
share a system, one after another. An attack passes if everything that its name says was so, no service has died, and an ordinary send went
through afterwards. The command shows how much each attack tried.

${[...Map.groupBy(lines, headingOf)].map(([name, same]) => [name, "", ...same.map(({ attack }) => `- ${attack}`), ""].join("\n")).join("\n")}`;

/** One line for each attack. The terminal also shows how much of it was tried; the page names the attacks and their results. */
export default class TableReporter implements Reporter {
  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const at = `${new Date().toISOString().slice(0, 10)}${process.env[hostileVariables.full] ? "" : ", short"}`;
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const lines = tests.map((test): Line => ({ attack: test.name, result: test.result().state, at }));
    const shown = tests.map((test) => {
      const figures = Object.entries(test.meta().figures ?? {}).map(([name, value]) => `${value} ${name}`);
      return `| ${test.name} | ${figures.join(", ")} | ${test.result().state} |`;
    });
    process.stdout.write(["", "| attack | tried | result |", "|---|---|---|", ...shown, ""].join("\n"));
    if (!process.env[hostileVariables.write]) return;
    // Attacks that did not run keep their lines.
    const before = linesOf((await readReliability()).hostile);
    const kept = before.map((line) => lines.find(({ attack }) => attack === line.attack) ?? line);
    const added = lines.filter(({ attack }) => !before.some((line) => line.attack === attack));
    await writeReliability({ hostile: page([...kept, ...added]) });
  }
}
