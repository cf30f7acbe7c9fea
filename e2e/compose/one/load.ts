import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { Herald } from "@herald/client";
import { eventually } from "@herald/testing";
import type { Demo } from "../first-push.ts";
import type { Docker, OneContainer } from "./container.ts";

const devices = 100_000;
const sendsPerSecond = 50;
const patience = { timeoutMs: 300_000 };

const tokenOf = (device: number) => device.toString(16).padStart(64, "0");

/** 100,000 devices, a broadcast to them and 50 sends a second beside it, under the container's memory limit. Says the most that it used. */
export const loadInMemory = async (
  one: OneContainer,
  docker: Docker,
  demo: Demo,
  say: (line: string) => void,
): Promise<void> => {
  const herald = new Herald({ url: demo.gateway, token: demo.token, maxRetries: 8 });
  const file = Array.from({ length: devices }, (_, device) =>
    JSON.stringify({ token: tokenOf(device), platform: "ios" }),
  ).join("\n");
  let begun = performance.now();
  const seconds = () => ((performance.now() - begun) / 1_000).toFixed(0);
  const { id } = await herald.imports.create({ format: "herald" });
  await herald.imports.upload(id, () => new Blob([file]));
  await eventually(async () => assert.equal((await herald.imports.get(id)).status, "completed"), patience);
  say(`${devices} devices imported in ${seconds()} s`);

  begun = performance.now();
  const broadcast = await herald.notifications.send({ title: "All", targets: ["all"] });
  let finished = false;
  const whole = eventually(async () => {
    const found = await herald.notifications.get(broadcast.id);
    assert.equal(found.status, "completed", JSON.stringify(found));
    assert.equal(found.counts?.accepted, devices, JSON.stringify(found));
  }, patience).finally(() => {
    finished = true;
  });
  // Paced by the clock: a slow answer does not thin the load.
  const sends: Promise<string>[] = [];
  const start = performance.now();
  while (!finished || performance.now() - start < 30_000) {
    while (sends.length < ((performance.now() - start) / 1_000) * sendsPerSecond)
      sends.push(
        herald.notifications
          .send({ title: "One", targets: [`token:${tokenOf(sends.length)}`] })
          .then((sent) => sent.id),
      );
    await delay(10);
  }
  await whole;
  const ids = await Promise.all(sends);
  say(`a broadcast to ${devices} devices beside ${sendsPerSecond} sends/s (${ids.length}): ${seconds()} s`);
  const last = ids.at(-1) ?? "";
  await eventually(async () => assert.equal((await herald.notifications.get(last)).status, "completed"), patience);
  const most = "cat /sys/fs/cgroup/memory.peak 2>/dev/null || cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes";
  const used = "cat /sys/fs/cgroup/memory.stat /sys/fs/cgroup/memory/memory.stat 2>/dev/null | grep -E '^(anon|rss) '";
  const oom = await docker(
    "exec",
    one.name,
    "sh",
    "-c",
    "grep -hs '^oom_kill ' /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control || true",
  );
  const mebibytes = (text: string) => Math.round(Number(/\d+/.exec(text)?.[0]) / 1_048_576);
  say(
    `memory: ${mebibytes(await one.exec("sh", "-c", used))} MiB of processes after it, ${mebibytes(await one.exec("sh", "-c", most))} MiB at most with the cache of files`,
  );
  say(`disk: ${(await one.exec("du", "-sm", "/data")).split("\t")[0]} MB`);
  assert.match(oom, /^oom_kill 0$/m, "the kernel killed a process");
  assert.doesNotMatch(await one.logs(), /has ended/);
};
