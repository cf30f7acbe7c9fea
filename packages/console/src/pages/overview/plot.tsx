import "uplot/dist/uPlot.min.css";
import type { Stats } from "@herald/client";
import { Box, useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { count } from "../../parts/format.tsx";

const height = 240;

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });

/** The label of a tick: the time, or the date at midnight. */
const timeOf = (seconds: number): string => {
  const at = new Date(seconds * 1_000);
  const [hour, minute] = [at.getHours(), at.getMinutes()];
  return hour + minute === 0 ? day.format(at) : `${hour}:${String(minute).padStart(2, "0")}`;
};

const options = (width: number): uPlot.Options => {
  const axis = {
    stroke: color("muted"),
    grid: { stroke: color("line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const line = (label: string, name: string, fill: boolean): uPlot.Series => ({
    label,
    stroke: color(name),
    width: 1.8,
    points: { show: false },
    ...(fill && { fill: `color-mix(in srgb, ${color(name)} 12%, transparent)` }),
    value: (_plot, value) => (value === null ? "–" : count(value)),
  });
  return {
    width,
    height,
    padding: [12, 20, 0, 0],
    cursor: { points: { size: 7 }, y: false },
    legend: { live: true },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.1)] } },
    axes: [
      { ...axis, size: 30, values: (_plot, splits) => splits.map(timeOf) },
      {
        ...axis,
        size: 52,
        values: (_plot, splits) => splits.map((value) => (Number.isInteger(value) ? count(value) : "")),
      },
    ],
    series: [
      { value: "{DD} {MMM} {HH}:{mm}", label: "Time" },
      line("Sent", "good", true),
      line("Opened", "open", true),
      line("Failed", "bad", false),
    ],
  };
};

const valuesOf = ({ series }: Stats): uPlot.AlignedData => [
  series.map(({ at }) => Date.parse(at) / 1_000),
  series.map(({ sent }) => sent),
  series.map(({ opened }) => opened),
  series.map(({ failed }) => failed),
];

/** Sent, opened and failed over time. New values update the existing plot. */
export const Plot = ({ stats }: { readonly stats: Stats }) => {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(stats);
  latest.current = stats;
  const scheme = useComputedColorScheme();

  // biome-ignore lint/correctness/useExhaustiveDependencies: other colours are another plot
  useEffect(() => {
    const { current } = place;
    if (!current) return;
    const made = new uPlot(options(current.clientWidth), valuesOf(latest.current), current);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: current.clientWidth, height }));
    observer.observe(current);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [scheme]);
  useEffect(() => plot.current?.setData(valuesOf(stats)), [stats]);

  const { totals } = stats;
  const summary = `Over time: ${count(totals.sent)} sent, ${count(totals.opened)} opened, ${count(totals.failed)} failed`;
  return <Box ref={place} mih={270} role="img" aria-label={summary} />;
};
