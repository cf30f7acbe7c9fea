import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { Herald } from "@herald/client";
import { eventually } from "@herald/testing";
import type { Demo } from "../first-push.ts";
import { type OneContainer, untilReady, waits } from "./container.ts";

type Say = (line: string) => void;

const deviceToken = "c0ffee".padEnd(64, "0");
const heraldOf = (demo: Demo) => new Herald({ url: demo.gateway, token: demo.token, maxRetries: 8 });

/** Sends until `stopped`, and notes what was accepted. A refusal or a broken connection is none. */
const sendUntil = async (demo: Demo, stopped: () => boolean): Promise<string[]> => {
  const herald = new Herald({ url: demo.gateway, token: demo.token, maxRetries: 0 });
  const accepted: string[] = [];
  while (!stopped()) {
    const sent = await herald.notifications
      .send({ title: "Kill", targets: [`token:${deviceToken}`] })
      .catch(() => undefined);
    if (sent === undefined) await delay(20);
    else accepted.push(sent.id);
  }
  return accepted;
};

/** Every accepted send ends, with its push accepted by the simulator. */
const nothingIsLost = async (demo: Demo, accepted: readonly string[]): Promise<void> => {
  const herald = heraldOf(demo);
  for (const id of accepted)
    await eventually(async () => {
      const found = await herald.notifications.get(id);
      assert.equal(found.status, "completed", id);
      assert.equal(found.counts?.accepted, 1, JSON.stringify(found));
    }, waits);
};

const sendWhile = async (one: OneContainer, demo: Demo, act: () => Promise<void>): Promise<number> => {
  let stopped = false;
  const sending = sendUntil(demo, () => stopped);
  await act().finally(() => {
    stopped = true;
  });
  const accepted = await sending;
  await untilReady(one);
  await nothingIsLost(demo, accepted);
  return accepted.length;
};

/** Kills each part once while sends arrive; then one of them three times, which ends the container. */
export const killEachPart = async (one: OneContainer, demo: Demo, say: Say): Promise<void> => {
  await heraldOf(demo).devices.register({ token: deviceToken, platform: "ios" });
  const kill = (part: string) => one.exec("s6-svc", "-k", `/run/service/${part}`);
  const parts = ["gateway", "registry", "dispatch", "analytics", "nats", "ferretdb", "postgresql", "herald"];
  let accepted = 0;
  for (const part of parts) {
    accepted += await sendWhile(one, demo, async () => {
      await kill(part);
      await eventually(
        async () => assert.match(await one.logs(), new RegExp(`herald: ${part} has ended by signal 9`)),
        waits,
      );
      await untilReady(one);
    });
    assert.ok(await one.isRunning(), `the container ended with ${part}`);
  }
  say(`each of ${parts.length} parts killed and started again: ${accepted} sends accepted meanwhile, none lost`);

  await eventually(async () => {
    if (!(await one.isRunning())) return;
    await kill("analytics").catch(() => {});
    throw new Error("it still runs");
  }, waits);
  assert.match(await one.logs(), /analytics has ended three times in a minute, at last by signal 9/);
  await one.start();
  await untilReady(one);
  say("three ends in a minute ended the container with the reason; it starts again");
};

/** Kills the container while sends arrive, and once more while it starts, some moments after it began. */
export const killWhileSending = async (one: OneContainer, demo: Demo, say: Say, rounds = 4): Promise<void> => {
  await heraldOf(demo).devices.register({ token: deviceToken, platform: "ios" });
  let accepted = 0;
  for (let round = 0; round < rounds; round++)
    accepted += await sendWhile(one, demo, async () => {
      await delay(300 + 400 * round);
      await one.kill();
      await one.start();
      await delay(700 * round);
      await one.kill();
      await one.start();
      await untilReady(one);
    });
  say(`${2 * rounds} kills of the container: ${accepted} sends accepted meanwhile, none lost`);
};
