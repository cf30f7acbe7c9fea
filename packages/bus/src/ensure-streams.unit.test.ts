import { JetStreamApiError } from "@nats-io/jetstream";
import { PermissionViolationError } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { whyNotMade } from "./ensure-streams.ts";
import { tooLittleStorage } from "./stream-sizes.ts";

const refused = (description: string) => new JetStreamApiError({ code: 500, err_code: 10_074, description });
const disabled = Object.assign(new Error("jetstream is not enabled"), { name: "JetStreamNotEnabled" });

test.each([
  [disabled, /infra\/nats\.conf, for the server and for the account/],
  [new PermissionViolationError("no", "publish", "$JS.API.STREAM.CREATE.PUSH_CMD"), /run this as herald-bootstrap/],
  [refused("replicas > 1 not supported in non-clustered mode"), /^HERALD_NATS_REPLICAS is more than there are brokers/],
  [refused("something else"), /^something else$/],
])("%s says what to do", (error, words) => {
  expect(whyNotMade(error)).toMatch(words);
});

test("streams with more than the broker's limit need a higher one before they become smaller", () => {
  const gibibyte = 2 ** 30;
  expect(tooLittleStorage({ asked: 8 * gibibyte, taken: 25.5 * gibibyte, refused: ["PUSH_CMD"] })).toBe(
    "the streams have 25.5GiB of the broker's disk together, more than it may use, so it makes none smaller: it refused PUSH_CMD. Set `max_file_store` of its configuration to 25.5GiB or more, run this again, and then set it as before",
  );
  expect(tooLittleStorage({ asked: 8 * gibibyte, taken: 0, refused: ["PUSH_CMD"] })).toContain(
    "PUSH_CMD. Set `max_file",
  );
});
