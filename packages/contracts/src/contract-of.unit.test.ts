import { describe, expect, test } from "vitest";
import { contractOf, messages } from "./catalogue.ts";

const project = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
const notification = "ntf_06bq4ghm31tz5d2ns8y7k9w0ac";

describe("the contract of a subject", () => {
  test.each(
    Object.values(messages).map(({ name, filter }) => [
      name,
      filter.replaceAll("*", "x-1_Y").replace(">", "direct.ios.x.7"),
    ]),
  )("%s has %s", (name, subject) => {
    expect(contractOf(subject)?.name).toBe(name);
  });

  test.each([
    "",
    "push.cmd.v1.dispatch.send",
    `push.cmd.v1.dispatch.send.${project}`,
    `push.cmd.v1.dispatch.send.${project}.${notification}.more`,
    `push.cmd.v1.dispatch.send.${project}.*`,
    `push.cmd.v1.dispatch.send.${project}.>`,
    `push.cmd.v1.dispatch.send..${notification}`,
    `push.cmd.v1.dispatch.send.${project} .${notification}`,
    `push.cmd.v2.dispatch.send.${project}.${notification}`,
    "push.cmd.v1.dispatch.>",
    "push.deliver.v1",
    "push.deliver.v1.>",
    `push.deliver.v1.direct.ios.${project}.>`,
    `push.deliver.v1.direct.ios.${project}.`,
    "push.dlq.v1.dispatch-start",
    "push.req.v1.registry.devices.get",
    "push.sched.v1.batch.1",
    "$JS.API.STREAM.DELETE.PUSH_CMD",
    "$KV.push_tokens.x",
  ])("%s has none", (subject) => {
    expect(contractOf(subject)).toBeUndefined();
  });
});
