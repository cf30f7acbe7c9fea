import type { DryRun, TemplatePreview } from "@herald/client";
import { Alert, Box, Flex, Progress, Stack, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { count, exactTime, platformNames } from "../../parts/format.tsx";
import { Icon } from "../../parts/icon.tsx";
import type { Shown } from "../../parts/lock-screen.tsx";
import { Note, Panel } from "../../parts/page.tsx";
import { Preview } from "../../parts/preview.tsx";
import { Problem } from "../../parts/problem.tsx";
import { rolloutWords } from "./planned-rollout.ts";
import type { ComposeProblems } from "./problems.ts";

const platforms = ["ios", "android", "web"] as const;

type Props = {
  readonly dryRun: UseQueryResult<DryRun>;
  /** The payloads of a template, for platforms that the dry run did not render. */
  readonly rendered: TemplatePreview | undefined;
  readonly error: unknown;
  readonly problems: ComposeProblems;
  /** Whether a target is named, or a file chosen. */
  readonly hasRecipients: boolean;
  /** Whether the recipients come from a file, which Herald counts when it reads it. */
  readonly isFile: boolean;
  /** The typed content, shown for platforms that no device of the audience has. */
  readonly typed: Shown;
  readonly app: string;
};

/** What stops a draft: the sentences that are beside no field, and the names of the fields that have one. */
const Unsendable = ({ problems: { fields, others } }: { readonly problems: ComposeProblems }) => (
  <Alert icon={<Icon name="warning" />} title="This cannot be sent yet">
    {fields.length > 0 && <Text>{`See ${fields.join(", ")}.`}</Text>}
    {others.map((sentence) => (
      <Text key={sentence} className="break">
        {sentence}
      </Text>
    ))}
  </Alert>
);

/** Why fewer devices may get it, or later. */
const remarksOf = (dryRun: DryRun): string[] => {
  const { skips = {}, delayed = [], schedule = [], evaluated_later: later = [] } = dryRun;
  const rollout = rolloutWords(dryRun);
  const waves = schedule.length === 1 ? "One wave, at" : `${schedule.length} waves, the first at`;
  return [
    ...Object.entries(skips).map(([reason, devices]) => `${count(devices)} skipped: ${reason}`),
    ...delayed.map(({ until, reason, devices }) => `${count(devices)} delayed until ${exactTime(until)}: ${reason}`),
    ...(schedule.length > 0 ? [`${waves} ${exactTime(schedule[0]?.at)}`] : []),
    ...(rollout ? [`Rollout: ${rollout}`] : []),
    ...(later.length > 0 ? ["The kind’s cap is evaluated when it is sent: fewer may get it."] : []),
  ];
};

/** The number of devices and the preview of each platform. Both come from a dry run, so they match the real send. */
export const Audience = ({ dryRun, rendered, error, problems, hasRecipients, isFile, typed, app }: Props) => {
  const { isFetching } = dryRun;
  const data = hasRecipients ? dryRun.data : undefined;
  const isUnsendable = problems.fields.length + problems.others.length > 0;
  const total = data?.devices.total;
  // An app with the kit draws what has receipts or buttons.
  const formOf = (platform: (typeof platforms)[number]) =>
    platform === "android" && data?.rendered.drawn !== undefined ? "drawn" : platform;
  return (
    <Stack className="sticky">
      <Panel title="Audience" actions={isFetching && <Note>counting…</Note>}>
        {isUnsendable && <Unsendable problems={problems} />}
        {Boolean(error) && !isUnsendable && <Problem error={error} onRetry={() => void dryRun.refetch()} />}
        {!error && isFile && (
          <Text c="dimmed">Herald counts the recipients when it checks the file. The preview is of the first one.</Text>
        )}
        {!error && !isFile && !hasRecipients && <Text c="dimmed">Add a target to count its devices.</Text>}
        {!error && data && !isFile && (
          <>
            <Text className="audience-total" fz="md" mb={10} aria-live="polite">
              <Text component="b" fz="1.75rem" fw={620} lts="-0.02em">
                {count(total ?? 0)}
              </Text>{" "}
              {(total ?? 0) === 1 ? "device" : "devices"}
            </Text>
            <ul className="plain-list">
              {platforms.map((name) => (
                <Flex component="li" align="center" gap={10} key={name}>
                  <Box w={64}>{platformNames[name]}</Box>
                  <Progress
                    flex={1}
                    value={total ? (data.devices[name] / total) * 100 : 0}
                    aria-label={platformNames[name] ?? name}
                  />
                  <Text inherit w={56} ta="right">
                    {count(data.devices[name])}
                  </Text>
                </Flex>
              ))}
            </ul>
            {remarksOf(data).map((remark) => (
              <Text key={remark} c="dimmed" mt={8}>
                {remark}
              </Text>
            ))}
            {data.unmatched.length > 0 && (
              <Text c="var(--warn)">
                No active device matches:{" "}
                {data.unmatched.map((target) => (
                  <code key={target} className="mono break">
                    {target}
                  </code>
                ))}
              </Text>
            )}
          </>
        )}
      </Panel>
      <Preview
        payloadOf={(platform) => data?.rendered[formOf(platform)] ?? rendered?.[platform]?.payload}
        typed={typed}
        app={app}
      >
        {(platform) => {
          const size = data?.sizes[formOf(platform)];
          return (
            size && (
              <Note>
                {count(size.bytes)} of {count(size.max)} bytes
              </Note>
            )
          );
        }}
      </Preview>
    </Stack>
  );
};
