import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { canonicalZone, isTimeZone } from "./time-zone.ts";

describe("canonicalZone", () => {
  it("gives one name to every spelling", () => {
    expect(canonicalZone("europe/berlin")).toBe("Europe/Berlin");
    expect(canonicalZone("US/Pacific")).toBe("America/Los_Angeles");
    expect(canonicalZone("Etc/UTC")).toBe("UTC");
  });

  it.each(["Mars/Olympus", "__proto__", "constructor", "+02:00", "", "Europe/Berlin ", `Europe/${"x".repeat(60)}`])(
    "refuses %j",
    (name) => {
      expect(isTimeZone(name)).toBe(false);
    },
  );

  it("refuses the names that ICU adds, which are not IANA's", () => {
    const icu = "ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST";
    const names = [...icu.split(" "), "bst", "SystemV/PST8PDT", "systemv/ast4", "US/Pacific-New"];
    expect(names.filter((name) => isTimeZone(name))).toEqual([]);
  });

  it("refuses what else phones and computers call a zone", () => {
    const names = ["GMT+02:00", "GMT+0200", "UTC+1", "CEST", "W. Europe Standard Time", "Romance Standard Time"];
    expect(names.filter((name) => isTimeZone(name))).toEqual([]);
  });

  it("knows IANA's own: those that Node lists, short ones, links and offsets", () => {
    const short =
      "EST MST HST EST5EDT CST6CDT MST7MDT PST8PDT CET MET EET WET GMT GMT0 UTC UCT Zulu PRC ROC ROK NZ GB W-SU";
    const links = [
      "Asia/Calcutta",
      "Asia/Kolkata",
      "US/Pacific",
      "Europe/Kyiv",
      "Europe/Kiev",
      "Etc/GMT+5",
      "Etc/Zulu",
    ];
    const names = [...Intl.supportedValuesOf("timeZone"), ...short.split(" "), ...links, "America/Argentina/Ushuaia"];
    expect(names.filter((name) => !isTimeZone(name))).toEqual([]);
  });

  const tzdata = "/usr/share/zoneinfo/tzdata.zi";
  it.skipIf(!existsSync(tzdata))("knows every name of this machine's tzdata", () => {
    const lines = readFileSync(tzdata, "utf8").split("\n");
    const names = lines.flatMap((line) => {
      const [kind, first = "", second = ""] = line.split(" ");
      return kind === "Z" ? [first] : kind === "L" ? [second] : [];
    });
    expect(names.length).toBeGreaterThan(500);
    // `Factory` says that a computer has no zone yet.
    expect(names.filter((name) => name !== "Factory" && !isTimeZone(name))).toEqual([]);
  });
});
