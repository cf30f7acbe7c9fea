import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chartVariables, valuesPage, valuesSchema } from "./chart-values.ts";
import { read, root } from "./deployed-parts.ts";

const chart = join(root, "infra/helm/herald");

test("the chart's schema and the page about its values are these (npm run docs)", async () => {
  await expect(valuesSchema()).toMatchFileSnapshot(join(chart, "values.schema.json"));
  await expect(chartVariables()).toMatchFileSnapshot(join(chart, "files/variables.json"));
  await expect(valuesPage()).toMatchFileSnapshot(join(root, "docs/reference/chart-values.md"));
});

test("every value has a description of its own or of what it is in", () => {
  const undescribed = [...valuesPage().matchAll(/^\| `(\w+)` \|.*\| \|$/gm)].map(([, path]) => path);
  expect(undescribed).toEqual([]);
});

test.each(["alerts.yml", "dashboard.json"])("the chart's %s is the one of infra/observability", (file) => {
  expect(lstatSync(join(chart, "files", file)).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(chart, "files", file), "utf8")).toBe(read(`infra/observability/${file}`));
});

test("the chart has the version of the other artefacts", () => {
  const { version } = JSON.parse(read("package.json"));
  expect(read("infra/helm/herald/Chart.yaml")).toContain(`\nversion: ${version}\nappVersion: ${version}\n`);
});
