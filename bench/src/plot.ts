import { figureIn, type Table } from "./table.ts";

type Bar = { readonly label: string; readonly value: number; readonly kind: "before" | "now" | "beside" };
type Panel = { readonly title: string; readonly bars: readonly Bar[] };

/** Earlier medians of single sends to one device each. Two cores ran all processes. */
const before = [
  { label: "before small sends had a path of their own", perSecond: 139, micros: 9_700 },
  { label: "when they got it", perSecond: 414, micros: 3_500 },
] as const;

const barsOf = (bars: readonly (Omit<Bar, "value"> & { readonly value: number | undefined })[]): Bar[] =>
  bars.flatMap((bar) => (bar.value === undefined ? [] : [{ ...bar, value: bar.value }]));

/** Earlier figures and this run, with the floor and the peer of the same run. */
const panelsOf = (tables: readonly Table[], peer: string): Panel[] => {
  const figure = figureIn(tables);
  return [
    {
      title: "Single sends a second, from the first POST to the last push (more is better)",
      bars: barsOf([
        ...before.map(({ label, perSecond: value }) => ({ label, value, kind: "before" as const })),
        { label: "this run", value: figure("direct"), kind: "now" },
        { label: "this run, each with an Idempotency-Key", value: figure("direct-keyed"), kind: "now" },
        { label: "floor of this run", value: figure("send-floor"), kind: "beside" },
        { label: peer, value: figure("peer-singles"), kind: "beside" },
      ]),
    },
    {
      title: "CPU of a single send in µs, all processes and the load (less is better)",
      bars: barsOf([
        ...before.map(({ label, micros: value }) => ({ label, value, kind: "before" as const })),
        { label: "this run", value: figure("direct-cpu"), kind: "now" },
        { label: "this run, each with an Idempotency-Key", value: figure("direct-keyed-cpu"), kind: "now" },
        { label: "floor of this run", value: figure("send-floor-cpu"), kind: "beside" },
        { label: `${peer}, its own process alone`, value: figure("peer-singles-cpu"), kind: "beside" },
      ]),
    },
  ];
};

const width = 860;
const labelWidth = 310;
/** Room for the number behind the longest bar. */
const numberWidth = 70;
const barHeight = 20;
const step = 28;
const titleHeight = 40;
const colours = { before: "#9aa5b1", now: "#1f6feb", beside: "#c98a1b" } as const;

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const panelHeight = ({ bars }: Panel): number => titleHeight + bars.length * step + 16;

const panelAt = ({ title, bars }: Panel, top: number): string => {
  const largest = Math.max(...bars.map(({ value }) => value));
  const rows = bars.map(({ label, value, kind }, index) => {
    const y = top + titleHeight + index * step;
    const length = Math.max(1, Math.round((value / largest) * (width - labelWidth - numberWidth - 20)));
    const middle = y + barHeight / 2 + 4;
    return [
      `  <text x="${labelWidth - 8}" y="${middle}" text-anchor="end">${escaped(label)}</text>`,
      `  <rect x="${labelWidth}" y="${y}" width="${length}" height="${barHeight}" fill="${colours[kind]}"/>`,
      `  <text x="${labelWidth + length + 6}" y="${middle}">${Math.round(value).toLocaleString("en")}</text>`,
    ].join("\n");
  });
  return [`  <text x="20" y="${top + 24}" font-weight="bold">${escaped(title)}</text>`, ...rows].join("\n");
};

/** The text of docs/reference/performance.svg: horizontal bars, on white because a page may be dark. `peer` is the name in the plot. */
export const plot = (tables: readonly Table[], peer = "the peer"): string => {
  const panels = panelsOf(tables, peer);
  const tops = panels.map((_, index) => panels.slice(0, index).reduce((sum, one) => sum + panelHeight(one), 0));
  const height = panels.reduce((sum, one) => sum + panelHeight(one), 0);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#1c2733" role="img">
  <title>Single sends before and after</title>
  <rect width="${width}" height="${height}" fill="#ffffff"/>
${panels.map((panel, index) => panelAt(panel, tops[index] ?? 0)).join("\n")}
</svg>
`;
};
