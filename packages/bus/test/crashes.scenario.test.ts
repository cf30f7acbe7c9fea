import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createUnanswered, publish, sendGroupedRequest, sendRequest } from "@herald/bus";
import { newNotificationId, openRequests, SendV1 } from "@herald/contracts";
import { hasCode } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  type BusTest,
  headersOf,
  messagesIn,
  newProject,
  readStream,
  sendOf,
  shortenAckWait,
  startBusTest,
} from "./fixture.ts";
import { durable } from "./send-fixture.ts";

let t: BusTest;
let stopChild = async () => {};
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(async () => {
  await stopChild();
  await t.reset();
});
afterAll(() => t.stop());

/** Keeps a service running whose process ends whenever it handles what is `fatal`. Gives up after `most` deaths. */
const keepRunning = (fatal: string, most = 16) => {
  let child: ChildProcess;
  let stopping = false;
  const state = { deaths: 0, handled: new Set<string>(), kill: () => child.kill("SIGKILL") };
  const start = () => {
    child = spawn(
      process.execPath,
      ["--conditions=@herald/source", join(import.meta.dirname, "fatal-child.ts"), t.broker.url, fatal],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    if (child.stdout) createInterface(child.stdout).on("line", (id) => state.handled.add(id));
    child.once("exit", () => {
      if (stopping) return;
      state.deaths++;
      if (state.deaths < most) start();
    });
  };
  start();
  stopChild = async () => {
    stopping = true;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  return state;
};

/** Two beside other messages, one that leaves a note, three alone. */
const maxDeaths = 6;

/** A process needs seconds to start while the machine is busy. */
const patient = { timeoutMs: 120_000 };

const publishAll = (sends: readonly SendV1[]) =>
  Promise.all(sends.map((send) => publish(t.bus, SendV1, send, { id: send.notificationId })));

const allSettled = () => eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(0), patient);

const idsOf = (sends: readonly SendV1[]) => new Set(sends.map(({ notificationId }) => notificationId));

describe("processes that end abruptly", () => {
  test("over a message make it a dead letter after a few deaths, and the messages beside it are handled", async () => {
    await shortenAckWait(t, "PUSH_CMD", durable, 500);
    const fatal = sendOf();
    const others = Array.from({ length: 60 }, () => sendOf());
    const sends = others.toSpliced(20, 0, { ...fatal, content: { ...fatal.content, title: "fatal" } });
    await publishAll(sends);
    const state = keepRunning("fatal");
    await allSettled();
    const letters = await readStream(t, "PUSH_DLQ");
    expect(letters.map(({ data }) => JSON.parse(new TextDecoder().decode(data)).notificationId)).toEqual([
      fatal.notificationId,
    ]);
    expect(headersOf(letters[0])).toMatchObject({ "Herald-Dead-Reason": ["process-crashed"] });
    expect(state.deaths).toBeLessThanOrEqual(maxDeaths);
    await eventually(() => expect(state.handled).toEqual(idsOf(others)));
  });

  test("at random make no message a dead letter", async () => {
    await shortenAckWait(t, "PUSH_CMD", durable, 300);
    const sends = Array.from({ length: 1_000 }, () => sendOf());
    await publishAll(sends);
    const state = keepRunning("none");
    for (let kills = 0; kills < 8; kills++) {
      const before = state.handled.size;
      const more = Math.ceil(Math.random() * 10);
      await eventually(() => expect(state.handled.size).toBeGreaterThanOrEqual(before + more), patient);
      state.kill();
      await eventually(() => expect(state.deaths).toBe(kills + 1));
    }
    await allSettled();
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(0);
    await eventually(() => expect(state.handled).toEqual(idsOf(sends)));
  });

  test("over a request make it refused after a few deaths, and the requests beside it are answered", async () => {
    const request = () => ({ projectId: newProject(), notificationIds: [newNotificationId(new Date())] });
    const fatal = request();
    const others = Array.from({ length: 20 }, request);
    const state = keepRunning(fatal.projectId);
    const ask = sendGroupedRequest(() => t.bus, openRequests.count);
    const unanswered = createUnanswered();
    const askOnce = async (one: typeof fatal) => {
      try {
        const [id = ""] = one.notificationIds;
        const suspect = { suspect: id, timeoutMs: 2_000 };
        return await (unanswered.isSuspect(one.projectId)
          ? sendRequest(t.bus, openRequests.count, one, suspect)
          : ask(one));
      } catch (error) {
        unanswered.count(one.projectId, error);
        if (hasCode(error, "service-unavailable")) throw error;
        return hasCode(error, "process-crashed") ? "refused" : error;
      }
    };
    const repeat = (one: typeof fatal) => eventually(() => askOnce(one), patient);
    const answers = await Promise.all([fatal, ...others].map(repeat));
    expect(answers).toEqual(["refused", ...others.map(({ notificationIds: [id = ""] }) => ({ counts: { [id]: 1 } }))]);
    expect(state.deaths).toBeLessThanOrEqual(maxDeaths);
    const before = state.deaths;
    await expect(repeat(fatal)).resolves.toBe("refused");
    expect(state.deaths).toBe(before);
  });
});
