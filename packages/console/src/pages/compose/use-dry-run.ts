import type { NewNotification, NewPreview, TemplateContent } from "@herald/client";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useProject } from "../../api/clients.ts";
import { exampleOfVariable, typedValue } from "../../parts/variable.ts";
import type { FileRecipient } from "../recipients-file/read-file.ts";
import type { Draft } from "./draft.ts";
import { dryRunOf, hasContent, moreProblem, notificationOf } from "./notification-of.ts";

/** Long enough that typing does not start a dry run at every key: dry runs have a quota. */
const typingMs = 600;

const platforms = ["ios", "android", "web"] as const;

/** The published content of a template; undefined until it is read, or without a template. */
export const useTemplateContent = (name: string): TemplateContent | undefined => {
  const { id, herald } = useProject();
  const { data } = useQuery({
    queryKey: [id, "templates", "published", name],
    queryFn: async ({ signal }) => {
      const { published } = await herald.templates.get(name, { signal });
      return (await herald.templates.get(name, { version: published, signal })).content;
    },
    enabled: name !== "",
  });
  return name === "" ? undefined : data;
};

/** A value for each variable of the texts: what is typed, the first recipient's, the fallback, or an example. */
const samplesOf = ({ variables }: Draft, first: FileRecipient | undefined) => ({
  ...first?.variables,
  ...Object.fromEntries(
    variables.map(({ name, type, fallback, text }) => [
      name,
      typedValue(type, text || String(first?.variables[name] ?? "") || fallback || exampleOfVariable(type, name)),
    ]),
  ),
});

/** The texts of a draft as a template of their own. */
const contentOf = (send: NewNotification, template: TemplateContent | undefined, first: FileRecipient | undefined) => {
  const { targets: _, recipients: __, send_at: ___, time_zone: ____, past: _____, rollout: ______, ...message } = send;
  const { template: _______, variables: ________, locale: _________, ...own } = message;
  const columns = Object.keys(first?.variables ?? {}).map((name) => [name, { type: "string", fallback: "" }]);
  return { ...template, ...own, variables: template?.variables ?? Object.fromEntries(columns) };
};

/**
 * The dry run of a draft, and the payloads of its texts, which a draft with variables has also before it has targets. Undefined while
 * `may` is false: who may not send has no dry runs.
 */
export const useDryRun = (draft: Draft, first: FileRecipient | undefined, may: boolean) => {
  const { id, herald } = useProject();
  const [settled] = useDebouncedValue(draft, typingMs);
  const template = useTemplateContent(settled.template);
  const isReady = may && moreProblem(settled) === undefined;
  const asked = isReady ? dryRunOf(settled, first) : undefined;
  const dryRun = useQuery({
    queryKey: [id, "dry-run", asked],
    queryFn: ({ signal }) => herald.notifications.dryRun(asked ?? {}, { signal }),
    enabled: asked !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
  const send = notificationOf(settled, first);
  const isRendered = settled.template === "" ? first !== undefined : template !== undefined;
  const content = isRendered && hasContent(send) ? contentOf(send, template, first) : undefined;
  const preview = { content, variables: samplesOf(settled, first) } as NewPreview;
  const isWhole = asked !== undefined && platforms.every((name) => (dryRun.data?.devices[name] ?? 0) > 0);
  const rendered = useQuery({
    queryKey: [id, "template-preview", preview],
    queryFn: ({ signal }) => herald.templates.preview(settled.template || "draft", preview, { signal }),
    enabled: isReady && content !== undefined && !isWhole,
    placeholderData: keepPreviousData,
  });
  const isCurrent = settled === draft && !dryRun.isPlaceholderData;
  return {
    dryRun,
    /** The payloads of the texts by platform, for platforms that no device of the audience has. */
    rendered: content && rendered.data,
    error: asked === undefined ? content && rendered.error : dryRun.error,
    /** The dry run of the draft as it is now. */
    counted: isCurrent ? dryRun.data : undefined,
  };
};
