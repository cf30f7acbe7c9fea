import { once } from "node:events";
import { parseArgs } from "node:util";
import { type Broadcast, broadcast } from "./broadcast.ts";
import { startSystem } from "./herald.ts";
import { end, firstLine, start } from "./processes.ts";

const { values } = parseArgs({
  options: {
    devices: { type: "string", default: "10000,100000" },
    runs: { type: "string", default: "3" },
  },
});
const sizes = values.devices.split(",").map(Number);
const runs = Number(values.runs);

/** Minimum, median and maximum: a machine that others share gives no single figure. */
const spread = (numbers: readonly number[], digits = 0): string => {
  const sorted = numbers.toSorted((one, other) => one - other);
  const at = (index: number) => (sorted[index] ?? 0).toFixed(digits);
  return [at(0), at(Math.floor((sorted.length - 1) / 2)), at(sorted.length - 1)].join(" / ");
};

type Floor = { readonly pushes: number; readonly seconds: number; readonly cpuMicros: number };

/** `node:http2` alone, in the same run, against the same sink. */
const measureFloor = async (sink: { url: string; ca: string }, pushes: number): Promise<Floor> => {
  const child = start("bench/src/bare-http2.ts", [sink.url, String(pushes)], { BENCH_CA: sink.ca });
  const floor = await firstLine<Floor>(child);
  if (child.exitCode === null) await once(child, "exit");
  return floor;
};

const report = (devices: number, broadcasts: readonly Broadcast[], floors: readonly Floor[]): void => {
  const floorRates = floors.map(({ pushes, seconds }) => pushes / seconds);
  const floorCpu = floors.map(({ pushes, cpuMicros }) => cpuMicros / pushes);
  const of = (pick: (one: Broadcast) => number) => spread(broadcasts.map(pick));
  console.log(
    `\none send to a topic of ${devices} devices, from the POST to the last push (minimum / median / maximum of ${runs})`,
  );
  console.log(`  pushes/s                         ${of((one) => one.pushesPerSecond)}`);
  console.log(`  node:http2 alone, pushes/s       ${spread(floorRates)}`);
  const ratios = broadcasts.map((one, index) => one.pushesPerSecond / (floorRates[index] ?? 1));
  console.log(`  ratio                            ${spread(ratios, 2)}`);
  console.log(`  CPU of Herald, µs a push         ${of((one) => one.ownCpu)}`);
  console.log(`  node:http2 alone, µs a push      ${spread(floorCpu)}`);
  for (const name of Object.keys(broadcasts[0]?.cpu ?? {}))
    console.log(`    ${name.padEnd(12)} µs a push        ${of((one) => one.cpu[name] ?? 0)}`);
  for (const name of Object.keys(broadcasts[0]?.peakMegabytes ?? {}))
    console.log(`    ${name.padEnd(12)} peak MB          ${of((one) => one.peakMegabytes[name] ?? 0)}`);
};

console.log("The sink answers 200 and counts; HTTP/2 framed by hand in Node, a process of its own.");
const sinkProcess = start("bench/src/sink.ts");
const sink = await firstLine<{ url: string; ca: string; control: string }>(sinkProcess);
const system = await startSystem(sink);
try {
  await system.seed("warm-up", 5_000);
  await broadcast(system, sink.control, "warm-up", 5_000);
  for (const devices of sizes) {
    const topic = `of-${devices}`;
    await system.seed(topic, devices);
    const broadcasts: Broadcast[] = [];
    const floors: Floor[] = [];
    for (let run = 0; run < runs; run++) {
      floors.push(await measureFloor(sink, devices));
      broadcasts.push(await broadcast(system, sink.control, topic, devices));
    }
    report(devices, broadcasts, floors);
  }
} finally {
  await system.stop();
  await end(sinkProcess);
}
