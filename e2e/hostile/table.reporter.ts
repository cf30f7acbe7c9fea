import type { Reporter, TestModule } from "vitest/node";
import { machine, readReliability, writeReliability } from "../harness/reliability-page.ts";
import { hostileVariables } from "./scale.ts";

type Line = { readonly attack: string; readonly result: string; readonly at: string };

const rule = "|---|---|---|";
const head = ["| attack | result | on |", rule];
const written = ({ attack, result, at }: Line) => `| ${attack} | ${result} | ${at} |`;

const linesOf = (page: string): Line[] =>
  page
    .split("\n")
    .slice(page.split("\n").indexOf(rule) + 1)
    .filter((line) => line.startsWith("| "))
    .map((line) => {
      const [attack = "", result = "", at = ""] = line.slice(2, -2).split(" | ");
      return { attack, result, at };
    });

const page = (lines: readonly Line[]) => `## Attacks

Written by \`npm run test:hostile -- --full --write\`, or without \`--full\` where a line says so, on ${machine()}. Files of attacks
share a system, one after another, unless they need other settings, break it or fill it. An attack passes if everything that its name says
was so, no service has died, and an ordinary send went through afterwards. The command shows how much each attack tried, and what it cost.

${[...head, ...lines.map(written)].join("\n")}
`;

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
