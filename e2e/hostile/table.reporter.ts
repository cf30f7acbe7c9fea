import type { Reporter, TestModule } from "vitest/node";

/** One line for each attack: what was tried, how much of it, and whether it held. */
export default class TableReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => {
        const { figures = {} } = test.meta();
        const said = Object.entries(figures).map(([name, value]) => `${value} ${name}`);
        return `| ${test.name} | ${said.join(", ")} | ${test.result().state} |`;
      }),
    );
    process.stdout.write(["", "| attack | tried | verdict |", "|---|---|---|", ...rows, ""].join("\n"));
  }
}
