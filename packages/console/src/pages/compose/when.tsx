import { Box, SegmentedControl, Select, SimpleGrid, Text } from "@mantine/core";
import { Field } from "../../parts/field.tsx";
import { FormFields } from "../../parts/fields.tsx";
import { exactTime } from "../../parts/format.tsx";
import { Panel } from "../../parts/page.tsx";
import type { Draft } from "./draft.ts";
import { mayRollOut } from "./notification-of.ts";
import { rolloutFields } from "./rollout-fields.ts";

type Props = {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly problemOf: (name: string) => string | undefined;
};

/** In the format of `datetime-local`. */
const localTime = (at: Date): string =>
  new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

const soon = () => localTime(new Date(Date.now() + 3_600_000));

const pasts = [
  { value: "skip", label: "do not get it" },
  { value: "now", label: "get it at once" },
  { value: "tomorrow", label: "get it tomorrow at that time" },
];

/** When a draft is sent, in words. */
export const whenOf = ({ sendAt, past }: Draft): string | undefined => {
  if (sendAt === "") return "now";
  return past === "" ? exactTime(new Date(sendAt).toISOString()) : `${sendAt.replace("T", " ")} on each device's clock`;
};

const choiceOf = ({ sendAt, past }: Draft) => (sendAt === "" ? "now" : past === "" ? "later" : "local");

/** When to send: now, at an instant, or at the local time of each device. */
export const When = ({ draft, change, problemOf }: Props) => {
  if (draft.from === "file")
    return (
      <Panel title="When">
        <Text c="dimmed">A file is sent at once, line by line, after you have seen what Herald found in it.</Text>
      </Panel>
    );
  const choice = choiceOf(draft);
  const sendAt = draft.sendAt || soon();
  const choices = {
    now: { sendAt: "", past: "" },
    later: { sendAt, past: "" },
    local: { sendAt, past: "tomorrow" },
  } as const;
  return (
    <Panel
      title="When"
      actions={
        <SegmentedControl
          size="xs"
          aria-label="When"
          value={choice}
          onChange={(value) => change(choices[value as keyof typeof choices])}
          data={[
            { value: "now", label: "Now" },
            { value: "later", label: "Later" },
            { value: "local", label: "Local time" },
          ]}
        />
      }
    >
      {choice === "now" ? (
        <Text c="dimmed">Sent as soon as you confirm.</Text>
      ) : (
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
          <Field
            type="datetime-local"
            label="Send at"
            description={
              choice === "local"
                ? "On the clock of each device; at most 30 days ahead."
                : `In your time zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}; at most 30 days ahead.`
            }
            value={draft.sendAt}
            {...(choice === "later" && { min: localTime(new Date()) })}
            onChange={(at) => at && change({ sendAt: at })}
            error={problemOf("send_at")}
          />
          {choice === "local" && (
            <Select
              label="Devices whose clocks have passed it"
              description="Their time zone is ahead of the others."
              data={pasts}
              value={draft.past}
              onChange={(past) => past && change({ past: past as Draft["past"] })}
              error={problemOf("past") ?? problemOf("time_zone")}
              allowDeselect={false}
            />
          )}
        </SimpleGrid>
      )}
      {mayRollOut(draft) && (
        <Box mt="sm">
          <FormFields
            fields={rolloutFields}
            values={draft.rollout}
            change={(changes) => change({ rollout: { ...draft.rollout, ...changes } })}
            problemOf={(path) => problemOf(`rollout/${path}`)}
          />
        </Box>
      )}
    </Panel>
  );
};
