import type { DryRun } from "@herald/client";
import { count, platformNames } from "../../parts/format.tsx";
import type { Draft } from "./draft.ts";

/** How many devices each platform has, of those that have any. */
export const byPlatform = (devices: DryRun["devices"]): string =>
  (["ios", "android", "web"] as const)
    .filter((name) => devices[name] > 0)
    .map((name) => `${platformNames[name]} ${count(devices[name])}`)
    .join(" · ");

/** What the dialogs before a send say of a draft first. */
export const messageFacts = (draft: Draft) => ({
  Message: (
    <b dir="auto" className="break">
      {draft.title || draft.body || draft.template || "(silent)"}
    </b>
  ),
  Kind: draft.kind || "none: cannot be switched off",
});
