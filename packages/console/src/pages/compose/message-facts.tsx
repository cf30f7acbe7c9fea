import type { Draft } from "./draft.ts";

/** What the dialogs before a send say of a draft first. */
export const messageFacts = (draft: Draft) => ({
  Message: (
    <b dir="auto" className="break">
      {draft.title || draft.body || draft.template || "(silent)"}
    </b>
  ),
  Kind: draft.kind || "none: cannot be switched off",
});
