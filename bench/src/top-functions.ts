/** The fields of a V8 CPU profile that are read here. `timeDeltas` are the microseconds before each sample. */
export type CpuProfile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
};

export type FunctionTime = {
  /** Its name, file and line. */
  readonly name: string;
  readonly selfMs: number;
  /** Share of the non-idle time. */
  readonly share: number;
};

const root = new URL("../../", import.meta.url).href;

const nameOf = ({ functionName, url, lineNumber }: CpuProfile["nodes"][number]["callFrame"]): string => {
  const name = functionName || "(anonymous)";
  return url === "" ? name : `${name} ${url.replace(root, "")}:${lineNumber + 1}`;
};

/** The functions with the highest self time, without their callees, over all profiles. */
export const topFunctions = (profiles: readonly CpuProfile[], max: number): FunctionTime[] => {
  const micros = new Map<string, number>();
  for (const { nodes, samples, timeDeltas } of profiles) {
    const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
    for (const [index, id] of samples.entries()) {
      const name = names.get(id) ?? "(unknown)";
      // The time until the next sample belongs to this sample.
      micros.set(name, (micros.get(name) ?? 0) + (timeDeltas[index + 1] ?? 0));
    }
  }
  micros.delete("(idle)");
  const busy = [...micros.values()].reduce((sum, one) => sum + one, 0);
  return [...micros]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, max)
    .map(([name, self]) => ({ name, selfMs: self / 1000, share: self / busy }));
};
