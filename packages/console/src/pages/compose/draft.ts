import type { NewNotification } from "@herald/client";
import { useCallback, useState } from "react";

/** What someone is writing, as the form has it. */
export type Draft = {
  readonly title: string;
  readonly body: string;
  readonly image: string;
  readonly link: string;
  readonly targets: readonly string[];
  /** As `datetime-local` has it; empty: now. */
  readonly sendAt: string;
  /** Further fields as JSON. */
  readonly more: string;
};

export const emptyDraft: Draft = { title: "", body: "", image: "", link: "", targets: [], sendAt: "", more: "" };

const keyOf = (projectId: string) => `herald-draft-${projectId}`;
/** Where storage is off, a draft outlives the page but not the tab. */
const kept = new Map<string, Draft>();

const read = (projectId: string): Draft => {
  try {
    const text = localStorage.getItem(keyOf(projectId));
    if (text) return { ...emptyDraft, ...JSON.parse(text) };
  } catch {
    // Below.
  }
  return kept.get(projectId) ?? emptyDraft;
};

export const saveDraft = (projectId: string, draft: Draft): void => {
  kept.set(projectId, draft);
  try {
    localStorage.setItem(keyOf(projectId), JSON.stringify(draft));
  } catch {
    // The map has it.
  }
};

/** The draft of a project. It is kept with every key that is pressed, until it is sent or thrown away. */
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
export const moreOf = ({ more }: Draft): Record<string, unknown> | undefined => {
  if (more.trim() === "") return {};
  try {
    const parsed: unknown = JSON.parse(more);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};

/** The notification that a draft stands for. */
export const notificationOf = (draft: Draft): NewNotification => ({
  ...moreOf(draft),
  ...(draft.title !== "" && { title: draft.title }),
  ...(draft.body !== "" && { body: draft.body }),
  ...(draft.image.trim() !== "" && { image: draft.image.trim() }),
  ...(draft.link.trim() !== "" && { link_to: draft.link.trim() }),
  ...(draft.sendAt !== "" && { send_at: new Date(draft.sendAt).toISOString() }),
  targets: draft.targets,
});
