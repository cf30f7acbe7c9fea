import type { TestContext } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    figures?: Readonly<Record<string, string | number>>;
  }
}

/** Adds figures to the row of the table, beside its name and result. */
export function show(task: TestContext["task"], figures: Readonly<Record<string, string | number>>): void {
  task.meta.figures = figures;
}
