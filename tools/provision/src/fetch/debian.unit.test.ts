import { expect, test } from "vitest";
import { withoutPackages } from "./debian.ts";

test("installed packages can be left out of a machine's list, so that apt fetches them", () => {
  const entry = (name: string) => `Package: ${name}\nStatus: install ok installed\nVersion: 1.0`;
  const status = `${["apt", "debootstrap", "wget", "docker.io"].map(entry).join("\n\n")}\n`;
  const left = withoutPackages(status, ["docker.io", "iptables", "debootstrap"]);
  expect(left.match(/^Package: .*/gm)).toEqual(["Package: apt", "Package: wget"]);
  expect(withoutPackages("", ["wget"])).toBe("");
});
