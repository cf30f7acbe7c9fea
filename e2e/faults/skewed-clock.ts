import { basename, dirname } from "node:path";

/**
 * Preloaded by a service to shift its clock by HERALD_FAULTS_CLOCKS, such as `dispatch=300000,registry=-60000` (ms). Timers and the
 * monotonic clock are unchanged, as on a machine with a wrong time.
 */
const service = basename(dirname(dirname(process.argv[1] ?? "")));
const clocks = (process.env.HERALD_FAULTS_CLOCKS ?? "").split(",").map((one) => one.split("="));
const offset = Number(clocks.find(([name]) => name === service)?.[1] ?? 0);

if (offset !== 0) {
  const RealDate = Date;
  const now = () => RealDate.now() + offset;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
    apply: () => new RealDate(now()).toString(),
    get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
  });
}
