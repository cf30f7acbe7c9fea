import type { DryRun } from "@herald/client";
import { Progress, Stack, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { count, exactTime, platformNames } from "../../parts/format.tsx";
import type { Shown } from "../../parts/lock-screen.tsx";
import { Note, Panel, Problem } from "../../parts/page.tsx";
import { Preview } from "../../parts/preview.tsx";

const platforms = ["ios", "android", "web"] as const;

type Props = {
  readonly dryRun: UseQueryResult<DryRun>;
  /** Whether a target is named. */
  readonly hasTargets: boolean;
  /** The typed content, shown for platforms that no device of the audience has. */
  readonly typed: Shown;
  readonly app: string;
};

/** The number of devices and the preview of each platform. Both come from a dry run, so they match the real send. */
export const Audience = ({ dryRun, hasTargets, typed, app }: Props) => {
  const { data, error, isFetching } = dryRun;
  const total = data?.devices.total;
  // An app with the kit draws what has receipts or buttons.
  const formOf = (platform: (typeof platforms)[number]) =>
    platform === "android" && data?.rendered.drawn !== undefined ? "drawn" : platform;
  return (
    <Stack className="sticky">
      <Panel title="Audience" actions={isFetching && <Note>counting…</Note>}>
        {error && <Problem error={error} onRetry={() => void dryRun.refetch()} />}
        {!error && !hasTargets && <Text c="dimmed">Add a target to count its devices.</Text>}
        {!error && data && hasTargets && (
          <>
            <p className="audience-total" aria-live="polite">
              <b>{count(total ?? 0)}</b> {(total ?? 0) === 1 ? "device" : "devices"}
            </p>
            <ul className="audience-bars">
              {platforms.map((name) => (
                <li key={name}>
                  <span>{platformNames[name]}</span>
                  <Progress
                    value={total ? (data.devices[name] / total) * 100 : 0}
                    aria-label={platformNames[name] ?? name}
                  />
                  <Text inherit ta="right">
                    {count(data.devices[name])}
                  </Text>
                </li>
              ))}
            </ul>
            {Object.entries(data.skips ?? {}).map(([reason, devices]) => (
              <Text key={reason} c="dimmed" mt={8}>
                {count(devices)} skipped: {reason}
              </Text>
            ))}
            {data.delayed?.map(({ until, reason, devices }) => (
              <Text key={until} c="dimmed" mt={8}>
                {count(devices)} delayed until {exactTime(until)}: {reason}
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
      <Preview payloadOf={(platform) => data?.rendered[formOf(platform)]} typed={typed} app={app}>
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
