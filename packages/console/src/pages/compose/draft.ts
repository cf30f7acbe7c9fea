import { useCallback, useState } from "react";
import { browserStorage } from "../../browser-storage.ts";
import { enteredOf, type Values } from "../../parts/field-values.ts";
import { objectOf } from "../../parts/json.ts";
import { contentFields } from "./content-fields.ts";
import { enteredRollout } from "./rollout-fields.ts";

type Texts = Readonly<Record<Exclude<keyof typeof contentFields, "buttons">, string>>;

/** An unsent notification, field by field as the form shows it. */
export type Draft = Texts & {
  readonly buttons: readonly Values[];
  /** What people may have switched it off by; empty: no kind. */
  readonly kind: string;
  /** Who gets it: targets, or the recipients of a file, which the form keeps only while the page is open. */
  readonly from: "targets" | "file";
  readonly targets: readonly string[];
  /** What a file of recipients names. */
  readonly fileOf: "user" | "device" | "token";
  /** The name of a published template; empty: none. */
  readonly template: string;
  /** Values of its variables as they are typed; empty: the fallback. */
  readonly variables: readonly {
    readonly name: string;
    readonly type: string;
    readonly fallback: string;
    readonly text: string;
  }[];
  /** In the format of `datetime-local`; empty: now. */
  readonly sendAt: string;
  /** `sendAt` is the local time of each device, and this holds where it has passed; empty: it is in the time zone of the browser. */
  readonly past: "" | "skip" | "now" | "tomorrow";
  readonly rollout: Values;
  /** Further fields as JSON. */
  readonly more: string;
};

export const emptyDraft: Draft = {
  ...(enteredOf(contentFields, {}) as Pick<Draft, keyof typeof contentFields>),
  ...{ template: "", variables: [], kind: "", from: "targets", targets: [], fileOf: "user" },
  ...{ sendAt: "", past: "", rollout: enteredRollout(undefined), more: "" },
};

const keyOf = (projectId: string) => `herald-draft-${projectId}`;

const read = (projectId: string): Draft => ({
  ...emptyDraft,
  ...objectOf(browserStorage.get(keyOf(projectId)) ?? ""),
});

export const saveDraft = (projectId: string, draft: Draft): void =>
  browserStorage.set(keyOf(projectId), JSON.stringify(draft));

/** The draft of a project. It is saved at every keystroke, until it is sent or discarded. */
export const useDraft = (projectId: string) => {
  const [draft, setDraft] = useState(() => read(projectId));
  const change = useCallback(
    (changes: Partial<Draft>) =>
      setDraft((now) => {
        const next = { ...now, ...changes };
        saveDraft(projectId, next);
        return next;
      }),
    [projectId],
  );
  const clear = useCallback(() => change(emptyDraft), [change]);
  return { draft, change, clear };
};

/** The variables with what was entered for some of them. */
export const withTexts = (variables: Draft["variables"], entered: Values): Draft["variables"] =>
  variables.map((one) => (Object.hasOwn(entered, one.name) ? { ...one, text: String(entered[one.name]) } : one));

export const isEmpty = (draft: Draft): boolean => JSON.stringify(draft) === JSON.stringify(emptyDraft);
