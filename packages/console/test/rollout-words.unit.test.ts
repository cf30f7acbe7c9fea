import { HeldReason, RolloutPhase } from "@herald/contracts";
import { expect, test } from "vitest";
import { phaseOf } from "../src/pages/notification/rollout-words.ts";

test("each phase of a rollout, and each reason why it is held, has words", () => {
  for (const phase of RolloutPhase.options) expect(phaseOf({ phase })).not.toBe(phase);
  for (const held of HeldReason.options) expect(phaseOf({ phase: "held", held })).not.toContain(`: ${held}`);
  expect(phaseOf({ phase: "held", held: "few-outcomes" })).toBe(
    "On hold: fewer than 50 devices have an outcome to judge by",
  );
  expect(phaseOf({ phase: "done", held: "throttled" })).toBe("No further parts");
  expect(phaseOf({ phase: "new" as never })).toBe("new");
});
