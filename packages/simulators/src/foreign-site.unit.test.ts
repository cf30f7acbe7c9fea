import { expect, test } from "vitest";
import { foreignSite } from "./foreign-site.ts";

test.each([
  [{ host: "127.0.0.1" }],
  [{ host: "127.0.0.1:8090" }],
  [{ host: "LocalHost:8090" }],
  [{ host: "[::1]:8090" }],
  [{ host: "simulators:8090" }],
  [{ host: "127.0.0.1:8090", origin: "http://localhost:8091" }],
])("is undefined for this machine's own: %o", (headers) => {
  expect(foreignSite(headers, ["simulators"])).toBeUndefined();
});

const accepted = "must be 127.0.0.1 or localhost or [::1], with any port";
test.each([
  [{}, `Host: ${accepted}`],
  [{ host: "" }, `Host: ${accepted}`],
  [{ host: "attacker.example:8090" }, `Host: ${accepted}`],
  [{ host: "127.0.0.1.attacker.example" }, `Host: ${accepted}`],
  [{ host: "localhost@attacker.example" }, `Host: ${accepted}`],
  [{ host: "simulators:8090" }, `Host: ${accepted}`],
  [{ host: "192.168.0.7" }, `Host: ${accepted}`],
  [{ host: "127.0.0.1", origin: "https://attacker.example" }, `Origin: ${accepted}, or absent`],
  [{ host: "127.0.0.1", origin: "null" }, `Origin: ${accepted}, or absent`],
])("names what is wrong and what would be accepted: %o", (headers, problem) => {
  expect(foreignSite(headers)).toBe(problem);
});
