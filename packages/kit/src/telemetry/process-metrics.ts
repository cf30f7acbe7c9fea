import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { Meter } from "@opentelemetry/api";

/** Ten milliseconds: fine enough to see a stall, coarse enough to cost nothing. */
const resolutionMs = 10;
const nanoseconds = 1e9;
const microseconds = 1e6;

/** CPU, memory and event loop of this process, read when Prometheus asks. Returns how to end it. */
export const observeProcess = (meter: Meter): (() => void) => {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let utilization = performance.eventLoopUtilization();
  const cpu = meter.createObservableCounter("process_cpu_seconds", {
    description: "CPU seconds, user and system",
  });
  const memory = meter.createObservableGauge("process_resident_memory_bytes", { description: "Resident memory" });
  const heap = meter.createObservableGauge("nodejs_heap_used_bytes", {
    description: "Live and dead objects of the JavaScript heap",
  });
  const external = meter.createObservableGauge("nodejs_external_memory_bytes", {
    description: "Buffers outside of the heap",
  });
  const loop = meter.createObservableGauge("nodejs_eventloop_delay_seconds", {
    description: "How late timers are, since the last reading",
  });
  const busy = meter.createObservableGauge("nodejs_eventloop_utilization_ratio", {
    description: "Share of time spent in JavaScript, since the last reading",
  });
  const uptime = meter.createObservableGauge("process_uptime_seconds", {
    description: "Seconds since the process began",
  });
  const observables = [cpu, memory, heap, external, loop, busy, uptime];
  const observe: Parameters<Meter["addBatchObservableCallback"]>[0] = (result) => {
    const used = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    result.observe(cpu, user / microseconds, { mode: "user" });
    result.observe(cpu, system / microseconds, { mode: "system" });
    result.observe(memory, used.rss);
    result.observe(heap, used.heapUsed);
    result.observe(external, used.external);
    for (const percentile of [50, 99])
      result.observe(loop, delay.percentile(percentile) / nanoseconds, { quantile: String(percentile / 100) });
    result.observe(loop, delay.max / nanoseconds, { quantile: "1" });
    delay.reset();
    const now = performance.eventLoopUtilization();
    result.observe(busy, performance.eventLoopUtilization(now, utilization).utilization);
    utilization = now;
    result.observe(uptime, process.uptime());
  };
  meter.addBatchObservableCallback(observe, observables);
  return () => {
    meter.removeBatchObservableCallback(observe, observables);
    delay.disable();
  };
};
