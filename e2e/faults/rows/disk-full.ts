import { setTimeout as delay } from "node:timers/promises";
import { eventually, request, startBroker } from "@herald/testing";
import type { Row } from "../row.ts";
import { smallDisk } from "../small-disk.ts";
import { startTrial } from "../trial.ts";

/** Enough for the streams of the row, and quick to fill. */
const diskMebibytes = 128;

export const diskFull: Row = {
  name: "disk-full",
  fault: "the disk of NATS is full during a broadcast",
  pass: "503 with Retry-After, nothing accepted; /readyz says why; continues when there is room, at the latest after a restart of NATS",
  run: async ({ long, start, brokerSource, folder, defer }) => {
    const disk = await smallDisk(await folder(), diskMebibytes);
    defer(() => disk.close());
    const system = await start({
      broker: () => startBroker({ syncAlways: true, folder: disk.folder }, brokerSource),
    });
    const trial = await startTrial(system);
    await trial.broadcastUnderWay();
    await disk.fill();
    const notification = { title: "No room", targets: ["topic:empty"] };
    const send = () => trial.project.call("POST /notifications", { body: { notification } });
    // Each open file has some space left in its last block, and this one is of no stream that the load fills.
    await eventually(async () => {
      const { status, body } = await send();
      if (status !== 202) return;
      trial.promise(body.data.id, 0);
      throw new Error("there is space left for commands");
    });
    const refused = () => trial.load.answers.get(503) ?? 0;
    const alreadyRefused = refused();
    // The load sends one at a time: none that was taken before is still to be answered then.
    await eventually(() => {
      if (refused() === alreadyRefused) throw new Error("the load meets no refusal");
    }).catch((error: Error) => trial.problem(error.message));
    const accepted = trial.load.promised.length;
    const answers = new Map<number, number>();
    for (let count = 0; count < (long ? 30 : 5); count++) {
      const answer = await send();
      answers.set(answer.status, (answers.get(answer.status) ?? 0) + 1);
      if (answer.status !== 503 || !(Number(answer.headers.get("retry-after")) > 0))
        trial.problem(`a send was answered ${answer.status}: ${answer.text.slice(0, 120)}`);
      else if (count === 0) trial.note(`says ${JSON.stringify(answer.body.errors)}`);
      await delay(500);
    }
    if (trial.load.promised.length > accepted) trial.problem("a send was answered 202 while the disk was full");
    await eventually(async () => {
      const { status, body } = await request(system.gateway, "GET /readyz");
      const reason = body.failing?.[0]?.reason;
      if (status !== 503 || !/stores nothing/.test(reason))
        throw new Error(`the gateway's /readyz was ${status}: ${reason}`);
      trial.note(`/readyz says: ${reason}`);
    }).catch((error: Error) => trial.problem(error.message));
    await disk.relieve();
    await system.broker.restart();
    await trial.recovered();
    await system.ready();
    return trial.finish({ timeoutMs: 90_000 });
  },
};
