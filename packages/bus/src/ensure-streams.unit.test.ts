import { JetStreamApiError } from "@nats-io/jetstream";
import { PermissionViolationError } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { whyNotMade } from "./ensure-streams.ts";

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
