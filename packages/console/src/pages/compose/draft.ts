import type { NewNotification } from "@herald/client";
import { useCallback, useState } from "react";
import { type Json, objectOf } from "../../parts/json.ts";
import { typedValue } from "../../parts/variable.ts";

export type DraftButton = {
  readonly id: string;
  readonly title: string;
  readonly link: string;
  readonly opens: boolean;
};

/** An unsent notification, field by field as the form shows it. */
export type Draft = {
  readonly title: string;
  readonly body: string;
  readonly image: string;
  readonly link: string;
  readonly urgency: string;
  readonly relevance: string;
  readonly thread: string;
  readonly channel: string;
  readonly icon: string;
  /** The share of the devices that are asked for a receipt, in percent; empty: the project's. */
  readonly receipts: string;
  readonly buttons: readonly DraftButton[];
  readonly targets: readonly string[];
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
  /** Further fields as JSON. */
  readonly more: string;
};

export const emptyDraft: Draft = {
  ...{ title: "", body: "", image: "", link: "" },
  ...{ urgency: "", relevance: "", thread: "", channel: "", icon: "" },
  ...{ receipts: "", buttons: [], targets: [], template: "", variables: [] },
  ...{ sendAt: "", past: "", more: "" },
};

const keyOf = (projectId: string) => `herald-draft-${projectId}`;
/** Fallback for disabled browser storage: the draft survives a change of page, but not a reload. */
const kept = new Map<string, Draft>();

const read = (projectId: string): Draft => {
  try {
    const text = localStorage.getItem(keyOf(projectId));
    if (text) return { ...emptyDraft, ...JSON.parse(text) };
  } catch {
    // The map below may have it.
  }
  return kept.get(projectId) ?? emptyDraft;
};

export const saveDraft = (projectId: string, draft: Draft): void => {
  kept.set(projectId, draft);
  try {
    localStorage.setItem(keyOf(projectId), JSON.stringify(draft));
  } catch {
    // Storage is disabled; the map has the draft.
  }
};

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

export const isEmpty = (draft: Draft): boolean => JSON.stringify(draft) === JSON.stringify(emptyDraft);

/** The fields of `more`; undefined when it is not a JSON object. */
export const moreOf = ({ more }: Draft): Json | undefined => (more.trim() === "" ? {} : objectOf(more));

/** Whether it wakes an app or an extension, and needs neither title nor text. */
export const showsNothing = (draft: Draft): boolean => {
  const { silent, push_type: type } = moreOf(draft) ?? {};
  return silent === true || type !== undefined;
};

const valuesOf = ({ variables }: Draft) =>
  Object.fromEntries(
    variables.flatMap(({ name, type, text }) => (text === "" ? [] : [[name, typedValue(type, text)]])),
  );

/** The fields of a draft that are single texts, by their names in the API. */
const textsOf = ({ title, body, image, link, thread, channel, icon }: Draft) => ({
  title,
  body,
  image: image.trim(),
  link_to: link.trim(),
  thread: thread.trim(),
  android_channel: channel.trim(),
  icon: icon.trim(),
});

const buttonOf = ({ id, title, link, opens }: DraftButton) => ({
  ...{ id: id.trim(), title },
  ...(opens ? link.trim() !== "" && { link_to: link.trim() } : { opens }),
});

const timeOf = ({ sendAt, past }: Draft) => {
  if (sendAt === "") return {};
  return past === ""
    ? { send_at: new Date(sendAt).toISOString() }
    : { send_at: `${sendAt.slice(0, 16)}:00`, time_zone: "device", past };
};

/** A draft as the body of a send. */
export const notificationOf = (draft: Draft): NewNotification => ({
  ...moreOf(draft),
  ...(draft.template !== "" && { template: draft.template, variables: valuesOf(draft) }),
  ...Object.fromEntries(Object.entries(textsOf(draft)).filter(([, text]) => text !== "")),
  ...(draft.urgency !== "" && { urgency: draft.urgency as NonNullable<NewNotification["urgency"]> }),
  ...(draft.relevance.trim() !== "" && { relevance: Number(draft.relevance.replace(",", ".")) }),
  ...(draft.receipts.trim() !== "" && { receipts: Number(draft.receipts.replace(",", ".")) / 100 }),
  ...(draft.buttons.length > 0 && { buttons: draft.buttons.map(buttonOf) }),
  ...timeOf(draft),
  targets: draft.targets,
});
