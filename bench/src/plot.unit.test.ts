import { expect, test } from "vitest";
import { plot } from "./plot.ts";
import type { Figure, Table } from "./table.ts";

const table = (title: string, figures: Partial<Record<Figure, number>>): Table => ({
  title,
  lines: Object.entries(figures).map(([figure, value]) => ({
    label: figure,
    values: [value],
    figure: figure as Figure,
  })),
});
const lengthOf = (svg: string, label: string): number[] =>
  [...svg.matchAll(new RegExp(`>${label}</text>\n *<rect [^>]*width="(\\d+)"`, "g"))].map(([, width]) => Number(width));

test("bars stand in proportion to the largest of their panel, with what was before, and with the peer", () => {
  const tables = [
    table("the peer", { "peer-singles": 4140, "peer-singles-cpu": 283 }),
    table("direct", { direct: 2070, "direct-cpu": 970, "send-floor": 5000, "send-floor-cpu": 200 }),
  ];
  const svg = plot(tables, "gorush");
  const [rate = 0, micros = 0] = lengthOf(svg, "this run");
  const [earlier = 0, earlierMicros = 0] = lengthOf(svg, "when they got it");
  expect(rate / earlier).toBeCloseTo(5, 0);
  expect(earlierMicros / micros).toBeCloseTo(3500 / 970, 1);
  expect(lengthOf(svg, "gorush")).toHaveLength(1);
  expect(lengthOf(svg, "gorush, its own process alone")).toHaveLength(1);
  expect(lengthOf(svg, "this run, each with an Idempotency-Key")).toEqual([]);
  expect(svg).toContain(">2,070</text>");
});

test("a run that measured no sends shows what was before, and names are escaped", () => {
  expect(plot([])).toContain(">9,700</text>");
  expect(plot([table("the peer", { "peer-singles": 1 })], "<&>")).toContain(">&lt;&amp;&gt;</text>");
});
