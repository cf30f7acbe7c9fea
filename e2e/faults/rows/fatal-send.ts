import { expectStatus } from "@herald/testing";
import { inParallel } from "../../harness/in-parallel.ts";
import { seed } from "../../harness/seed.ts";
import type { System } from "../../harness/system.ts";
import { dyingOver } from "../fatal-text.ts";
import type { Fixture, Row } from "../row.ts";
import { crowd, seconds, startTrial, type Trial } from "../trial.ts";

const fatal = "the last straw";

/** A system whose dispatch dies over a text. */
const dying: Fixture<System> = {
  open: ({ start }) =>
    start({
      startedFrom: (service, usual) =>
        service === "dispatch" ? { ...usual, env: { ...usual.env, ...dyingOver(fatal) } } : usual,
    }),
};

/** Devices of a trial's project, and a way to send to them. */
const startSending = async (system: System, script: readonly object[]) => {
  const trial = await startTrial(system, { script });
  const devices = await seed(system, trial.project, 250, { prefix: crowd });
  /** Sends to a device each, in one request, so that they share messages. Resolves to their ids. */
  const sendAll = async (titles: readonly string[]): Promise<string[]> => {
    const notifications = titles.map((title, at) => ({ title, targets: [`${devices[at % devices.length]?.id}`] }));
    const answer = await trial.project.call("POST /notifications/batch", { body: { notifications } });
    const ids = expectStatus(answer, 202).body.data.map(({ id }: { id: string }) => id);
    for (const id of ids) trial.promise(id, 1);
    return ids;
  };
  return { trial, sendAll };
};

/** The device of this send has failed, and those of the others have got theirs. */
const expectCondemned = async ({ project, problem, note }: Trial, ids: readonly string[], fatalId: string) => {
  const begun = performance.now();
  const { status, counts, failures } = await project.final(fatalId, 360_000);
  if (counts.failed !== 1 || failures?.internal !== 1)
    problem(`the fatal send is ${status}: ${JSON.stringify({ counts, failures })}`);
  note(`condemned after ${seconds(performance.now() - begun)}`);
  const others = await inParallel(
    ids.filter((id) => id !== fatalId),
    8,
    (id) => project.final(id, 60_000),
  );
  const failed = others.filter((other) => other.counts.accepted !== 1).length;
  if (failed > 0) problem(`${failed} of ${others.length} others have not been accepted`);
};

const others = (count: number) => Array.from({ length: count }, (_, at) => `Beside ${at}`);

const inGroup: Row = {
  name: "fatal-send",
  fault: "dispatch dies each time it pushes one of 250 sends of a message",
  pass: "the others reach their devices; it fails alone with `internal`",
  fixture: dying,
  run: async ({ use }) => {
    const { trial, sendAll } = await startSending(await use(dying), []);
    const ids = await sendAll([...others(120), fatal, ...others(129)]);
    await expectCondemned(trial, ids, `${ids[120]}`);
    await trial.recovered();
    return trial.finish();
  },
};

const inBacklog: Row = {
  name: "fatal-send-waiting",
  fault: "dispatch dies each time it pushes a send that waited in its project's backlog",
  pass: "the others reach their devices; it fails alone with `internal`",
  fixture: dying,
  run: async ({ use }) => {
    const script = [{ provider: "apns", tokenPrefix: crowd, delayMs: 3_000 }];
    const { trial, sendAll } = await startSending(await use(dying), script);
    for (let times = 0; times < 3; times++) await sendAll(others(250));
    const ids = await sendAll([...others(20), fatal, ...others(20)]);
    await expectCondemned(trial, ids, `${ids[20]}`);
    await trial.recovered();
    return trial.finish({ timeoutMs: 120_000 });
  },
};

export const fatalSends: readonly Row[] = [inGroup, inBacklog];
