import type { TestContext } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    figures?: Readonly<Record<string, string | number>>;
  }
}

/** What a row of the table shows beside its name and verdict. */
export function show(task: TestContext["task"], figures: Readonly<Record<string, string | number>>): void {
  task.meta.figures = figures;
}
