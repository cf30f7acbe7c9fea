import type { Reporter, TestModule } from "vitest/node";
import { machine, readReliability, writeReliability } from "../harness/reliability-page.ts";
import { hostileVariables } from "./scale.ts";

type Line = { readonly attack: string; readonly tried: string; readonly verdict: string; readonly at: string };

const rule = "|---|---|---|---|";
const head = ["| attack | tried | verdict | on |", rule];
const written = ({ attack, tried, verdict, at }: Line) => `| ${attack} | ${tried} | ${verdict} | ${at} |`;

const linesOf = (page: string): Line[] =>
  page
    .split("\n")
    .slice(page.split("\n").indexOf(rule) + 1)
    .filter((line) => line.startsWith("| "))
    .map((line) => {
      const [attack = "", tried = "", verdict = "", at = ""] = line.slice(2, -2).split(" | ");
      return { attack, tried, verdict, at };
    });

const page = (lines: readonly Line[]) => `## Hostile input

Written by \`npm run test:hostile -- --full --write\`, or without \`--full\` where a line says so, on ${machine()}. Services, broker, database and simulators
are processes of their own, as with the faults above; each attack has a system for itself. An attack passes when nothing of what
its name promises was otherwise, no service has died, and an ordinary send went through afterwards.

${[...head, ...lines.map(written)].join("\n")}
`;

/** One line for each attack: what was tried, how much of it, and whether it held. */
export default class TableReporter implements Reporter {
  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const at = `${new Date().toISOString().slice(0, 10)}${process.env[hostileVariables.full] ? "" : ", short"}`;
    const lines = modules.flatMap((module) =>
      [...module.children.allTests()].map((test): Line => {
        const said = Object.entries(test.meta().figures ?? {}).map(([name, value]) => `${value} ${name}`);
        return { attack: test.name, tried: said.join(", "), verdict: test.result().state, at };
      }),
    );
    process.stdout.write(["", ...head, ...lines.map(written), ""].join("\n"));
    if (!process.env[hostileVariables.write]) return;
    // Attacks that did not run keep their lines.
    const before = linesOf((await readReliability()).hostile);
    const kept = before.map((line) => lines.find(({ attack }) => attack === line.attack) ?? line);
    const added = lines.filter(({ attack }) => !before.some((line) => line.attack === attack));
    await writeReliability({ hostile: page([...kept, ...added]) });
  }
}
