import { Select, SimpleGrid } from "@mantine/core";
import { Field } from "../../parts/field.tsx";
import type { Draft } from "./draft.ts";

type Props = {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  /** The problem of a field of the API. */
  readonly problem: (field: string) => string | undefined;
};

const urgencies = [
  { value: "passive", label: "Passive: no sound, the screen stays dark" },
  { value: "active", label: "Active: the usual" },
  { value: "time-sensitive", label: "Time-sensitive: breaks through a Focus" },
  { value: "critical", label: "Critical: sounds even if muted" },
];

/** The fields that decide how a device presents the message. */
export const Presentation = ({ draft, change, problem }: Props) => {
  const { urgency, relevance, thread, channel, icon } = draft;
  return (
    <details className="payload" open={[urgency, relevance, thread, channel, icon].some((value) => value !== "")}>
      <summary>Presentation</summary>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <Select
          label="Urgency"
          description="On iOS the last two need an entitlement from Apple."
          placeholder="As the app and its channels say"
          data={urgencies}
          value={urgency || null}
          onChange={(value) => change({ urgency: value ?? "" })}
          error={problem("urgency")}
          clearable
          clearButtonProps={{ "aria-label": "Remove the urgency" }}
        />
        <Field
          label="Relevance"
          description="iOS: its order in the summary, from 0 to 1."
          placeholder="0.5"
          inputMode="decimal"
          value={relevance}
          onChange={(value) => change({ relevance: value })}
          error={problem("relevance")}
        />
        <Field
          label="Thread"
          description="Devices group messages of one thread."
          placeholder="order-42"
          value={thread}
          onChange={(value) => change({ thread: value })}
          error={problem("thread")}
        />
        <Field
          label="Android channel"
          description="The id of a channel that the app has created."
          placeholder="orders"
          value={channel}
          onChange={(value) => change({ channel: value })}
          error={problem("android_channel")}
        />
        <Field
          label="Icon"
          description="Browsers show it beside the text."
          placeholder="https://…"
          value={icon}
          onChange={(value) => change({ icon: value })}
          error={problem("icon")}
        />
      </SimpleGrid>
    </details>
  );
};
