import { describe, expect, test } from "vitest";
import { createExclusion } from "./exclusion.ts";
import { createRunning, runBeside } from "./permit.ts";

const settled = async (work: Promise<unknown>) => {
  let is = false;
  void work.finally(() => {
    is = true;
  });
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  return is;
};
const never = () => {};
const turn = { deaths: 0, isCleared: () => false, onAlone: async () => {}, onLong: never };

const exclusionWith = (limits: Parameters<typeof createExclusion>[1] = {}) => {
  const running = createRunning();
  return {
    ...createExclusion(running, limits),
    beside: (work: () => Promise<unknown>) => runBeside(running, work),
  };
};

describe("work that runs alone", () => {
  test("begins after the work that runs, and nothing begins before it ends", async () => {
    const { beside, alone } = exclusionWith();
    const [first, own] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const log: string[] = [];
    const step = (name: string, until?: Promise<void>) => async () => {
      log.push(name);
      await until;
    };
    const running = beside(step("first", first.promise));
    const single = alone(step("alone", own.promise), turn);
    const after = [beside(step("after")), alone(step("second alone"), turn)];
    expect(await settled(single)).toBe(false);
    expect(log).toEqual(["first"]);
    first.resolve();
    await running;
    await expect.poll(() => log).toEqual(["first", "alone"]);
    own.resolve();
    await Promise.all([single, ...after]);
    expect(log).toEqual(["first", "alone", "after", "second alone"]);
  });

  test("does not wait for work that takes long, and when it takes long itself, lets others begin", async () => {
    const { beside, alone } = exclusionWith({ waitMs: 1, aloneMs: 5 });
    const end = Promise.withResolvers<void>();
    const long = beside(() => end.promise);
    let calls = 0;
    const single = alone(() => end.promise, { ...turn, onLong: () => void calls++ });
    await expect(beside(async () => "begun")).resolves.toBe("begun");
    expect(calls).toBe(1);
    end.resolve();
    await Promise.all([long, single]);
  });

  test("begins in the order of deaths, and runs beside others when it is cleared before its turn", async () => {
    const { beside, alone } = exclusionWith();
    const [first, second, held] = [0, 1, 2].map(() => Promise.withResolvers<void>());
    const log: string[] = [];
    let found = false;
    const step = (name: string, until?: Promise<void>) => async () => {
      log.push(name);
      await until;
    };
    const all = [
      alone(step("first", first?.promise), turn),
      alone(step("innocent", held?.promise), { ...turn, isCleared: () => found }),
      alone(step("likely", second?.promise), { ...turn, deaths: 2 }),
    ];
    first?.resolve();
    await expect.poll(() => log).toEqual(["first", "likely"]);
    found = true;
    second?.resolve();
    await expect.poll(() => log).toEqual(["first", "likely", "innocent"]);
    await expect(beside(async () => "begun")).resolves.toBe("begun");
    held?.resolve();
    await Promise.all(all);
  });

  test("that fails lets others begin", async () => {
    const { beside, alone } = exclusionWith();
    await expect(alone(() => Promise.reject(new Error("broken")), turn)).rejects.toThrow("broken");
    await expect(beside(async () => 1)).resolves.toBe(1);
  });
});
