import { expect, test } from "vitest";
import { toBusError } from "./bus-error.ts";

test("a broker whose JetStream does not run yet is unavailable: what was asked is asked again", () => {
  const starting = Object.assign(new Error("jetstream is not enabled"), { name: "JetStreamNotEnabled" });
  expect(toBusError(starting)).toMatchObject({ code: "bus-unavailable", cause: starting });
});
