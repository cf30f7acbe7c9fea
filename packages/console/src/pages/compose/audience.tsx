import type { DryRun } from "@herald/client";
import { Progress, SegmentedControl, Stack, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { count, platformNames } from "../../parts/format.tsx";
import { LockScreen, type Shown, shownBy } from "../../parts/lock-screen.tsx";
import { JsonCode, Note, Panel, Problem } from "../../parts/page.tsx";

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
  const [platform, setPlatform] = useState<(typeof platforms)[number]>("ios");
  const { data, error, isFetching } = dryRun;
  const payload = data?.rendered[platform];
  const total = data?.devices.total;
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
      <Panel
        title="Preview"
        actions={
          <SegmentedControl
            size="xs"
            aria-label="Preview"
            value={platform}
            onChange={(value) => setPlatform(value as typeof platform)}
            data={platforms.map((name) => ({ value: name, label: platformNames[name] ?? name }))}
          />
        }
      >
        <LockScreen platform={platform} app={app} shown={payload === undefined ? typed : shownBy(platform, payload)} />
        {payload !== undefined && (
          <details className="payload">
            <summary>Payload</summary>
            <JsonCode value={payload} />
          </details>
        )}
      </Panel>
    </Stack>
  );
};
