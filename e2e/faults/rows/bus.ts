import { setTimeout as delay } from "node:timers/promises";
import { durables, streams } from "@herald/contracts";
import { eventually, expectStatus, operateBroker } from "@herald/testing";
import type { Row } from "../row.ts";
import { startTrial } from "../trial.ts";

const thrice: Row = {
  name: "thrice",
  fault: "every command, batch and event three times, out of order",
  pass: "the same final state; no repeat",
  run: async ({ long, shared, defer }) => {
    const system = await shared();
    const hands = await operateBroker(system.broker);
    defer(() => hands.close());
    const trial = await startTrial(system, { script: [] });
    const subjects = ["push.cmd.v1.>", "push.opens.v1.>", "push.deliver.v1.>", "push.due.v1.>", "push.evt.v1.>"];
    const publishing = hands.publishAgain(subjects, { times: 2, withinMs: 2_000 });
    for (let round = 0; round < (long ? 30 : 3); round++) {
      await trial.broadcast();
      await delay(1_000);
    }
    await trial.recovered();
    await trial.load.stop();
    trial.note(`${await publishing.stop()} messages were repeated`);
    const findings = await trial.finish();
    const { marked } = findings.repeated;
    if (marked > 0) trial.problem(`${marked} came twice`);
    return findings;
  },
};

const invalidBodies = ["not JSON", "{}", "null", '{"projectId":7}', '{"opens":"all"}', "[]", ""] as const;

/** Invalid messages: one for each durable of a work queue. */
const poisons = Object.values(durables)
  .filter(({ stream }) => streams[stream].retention === "workqueue")
  .map(({ filters }, index) => ({
    subject: (filters[0] ?? "").replaceAll(/[*>]/g, "prj_poison"),
    body: invalidBodies[index % invalidBodies.length] ?? "",
  }));

const poison: Row = {
  name: "poison",
  fault: "one message in a hundred of every work queue is malformed",
  pass: "each becomes a dead letter with a reason, and again after a replay",
  run: async ({ long, shared, defer }) => {
    const system = await shared();
    const hands = await operateBroker(system.broker);
    defer(() => hands.close());
    const trial = await startTrial(system, { script: [] });
    const rounds = long ? 20 : 3;
    type Letter = { id: string; reason: string; detail: string; replay_of?: string };
    const all = async (): Promise<Letter[]> =>
      expectStatus(await system.admin("GET /dead-letters?per_page=100"), 200).body.data;
    const before = new Set((await all()).map(({ id }) => id));
    const letters = async () => (await all()).filter(({ id }) => !before.has(id));
    for (let round = 0; round < rounds; round++) {
      await trial.broadcast();
      for (const { subject, body } of poisons) await hands.publish(subject, body);
      await delay(500);
    }
    const expected = Math.min(100 - before.size, rounds * poisons.length);
    await eventually(
      async () => {
        const found = (await letters()).length;
        if (found !== expected) throw new Error(`${found} of ${expected} are in the dead letters`);
      },
      { timeoutMs: 30_000 },
    ).catch((error: Error) => trial.problem(error.message));
    const [first, ...rest] = await letters();
    for (const { id, reason, detail } of [...(first ? [first] : []), ...rest])
      if (!reason || !detail) trial.problem(`the dead letter ${id} says no reason`);
    if (first) {
      const { body } = expectStatus(
        await system.admin("POST /dead-letters/replay", { body: { dead_letters: [first.id] } }),
        200,
        202,
      );
      trial.note(`replay: ${JSON.stringify(body.data).slice(0, 160)}`);
      if (!long)
        await eventually(async () => {
          if (!(await letters()).some(({ replay_of }) => replay_of === first.id))
            throw new Error("the replay has not died again as one");
        }).catch((error: Error) => trial.problem(error.message));
    }
    await trial.recovered();
    return trial.finish();
  },
};

const full: Row = {
  name: "stream-full",
  fault: "the streams of commands and small sends are full",
  pass: "503 with Retry-After, nothing accepted; recovers when there is room",
  run: async ({ long, shared, defer }) => {
    const system = await shared();
    const hands = await operateBroker(system.broker);
    defer(() => hands.close());
    const trial = await startTrial(system);
    await trial.broadcastUnderWay();
    const streams = ["PUSH_CMD", "PUSH_SEND"] as const;
    const before = await Promise.all(streams.map((stream) => hands.limit(stream, 1)));
    const refused = () => trial.load.answers.get(503) ?? 0;
    const alreadyRefused = refused();
    // The load sends one at a time: none that was taken before is still to be answered then.
    await eventually(() => {
      if (refused() === alreadyRefused) throw new Error("the load meets no refusal");
    }).catch((error: Error) => trial.problem(error.message));
    const accepted = trial.load.promised.length;
    for (const target of ["topic:empty", "user:unknown"]) {
      const notification = { title: "No room", targets: [target] };
      for (let count = 0; count < 5; count++) {
        const answer = await trial.project.call("POST /notifications", { body: { notification } });
        if (answer.status !== 503 || !(Number(answer.headers.get("retry-after")) > 0))
          trial.problem(`${target} was answered ${answer.status}: ${answer.text.slice(0, 120)}`);
        else if (count === 0) trial.note(`${target}: says ${JSON.stringify(answer.body.errors)}`);
      }
    }
    await delay(long ? 30_000 : 2_000);
    if (trial.load.promised.length > accepted) trial.problem("a send was answered 202 while the streams were full");
    for (const [at, stream] of streams.entries()) await hands.limit(stream, before[at] ?? 0);
    await trial.recovered();
    return trial.finish();
  },
};

export const busRows: readonly Row[] = [thrice, poison, full];
