import { describe, expect, test } from "vitest";
import { besidePeer, parsePeer, runPeer } from "./peer.ts";

const printed = `something else: 12 a second
broadcast: 14413 / 15286 / 16683 a second, 89 µs of gorush's CPU each, refused 0
batches of 100: 7628.5 / 8739 / 10268 a second, 102 µs of gorush's CPU each, refused 0
singles: 2335 / 2372 / 2543 a second, 283 µs of gorush's CPU each, refused 0
`;

describe("what a peer prints", () => {
  test("gives its name, and rates and CPU of each kind of work", () => {
    expect(parsePeer(printed)).toEqual({
      name: "gorush",
      broadcast: { rates: [14413, 15286, 16683], cpuMicros: 89 },
      batches: { rates: [7628.5, 8739, 10268], cpuMicros: 102 },
      singles: { rates: [2335, 2372, 2543], cpuMicros: 283 },
    });
  });

  test("may leave out work, CPU and name", () => {
    expect(parsePeer("singles: 900 a second")).toEqual({ name: "the peer", singles: { rates: [900] } });
    expect(parsePeer("singles: 900 a second, 12 µs each")).toEqual({
      name: "the peer",
      singles: { rates: [900], cpuMicros: 12 },
    });
  });

  test.each(["", "singles: fast", "singles: 12 / a second", " singles: 12 a second", "single: 12 a second"])(
    "%j is refused with the form that is expected",
    (output) => {
      expect(() => parsePeer(output)).toThrow(/printed no line such as `singles: 7512/);
    },
  );

  test("is read from the command's output, and a command that fails is said to have", async () => {
    await expect(runPeer("echo 'singles: 1 / 2 / 3 a second'")).resolves.toEqual({
      name: "the peer",
      singles: { rates: [1, 2, 3] },
    });
    await expect(runPeer("echo 'singles: 1 a second'; exit 3")).rejects.toThrow("ended with exit code 3");
  });

  test("stands beside rates as a ratio to its median", () => {
    expect(besidePeer(parsePeer(printed), "singles", [1186, 2372])).toEqual([
      { label: "gorush/s", values: [2335, 2372, 2543] },
      { label: "ratio to gorush", values: [0.5, 1], digits: 2 },
    ]);
    expect(besidePeer(parsePeer("singles: 1 a second"), "broadcast", [1])).toEqual([]);
    expect(besidePeer(undefined, "singles", [1])).toEqual([]);
  });
});
