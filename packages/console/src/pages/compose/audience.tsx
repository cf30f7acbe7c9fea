import type { DryRun } from "@herald/client";
import { SegmentedControl } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { count, platformNames } from "../../parts/format.tsx";
import { LockScreen, type Shown, shownBy } from "../../parts/lock-screen.tsx";
import { Panel, Problem } from "../../parts/page.tsx";
import { composeTexts } from "../../texts/compose.ts";

const platforms = ["ios", "android", "web"] as const;

type Props = {
  readonly dryRun: UseQueryResult<DryRun>;
  /** Whether there is somebody to count. */
  readonly hasTargets: boolean;
  /** What was typed, for platforms that nobody in the audience has. */
  readonly typed: Shown;
  readonly app: string;
};

/** How many devices, and what each platform shows: both by dry run, so it is what would be sent. */
export const Audience = ({ dryRun, hasTargets, typed, app }: Props) => {
  const [platform, setPlatform] = useState<(typeof platforms)[number]>("ios");
  const { data, error, isFetching } = dryRun;
  const payload = data?.rendered[platform];
  const total = data?.devices.total;
  return (
    <div className="stack sticky">
      <Panel
        title={composeTexts.audience}
        actions={isFetching && <span className="muted small">{composeTexts.counting}</span>}
      >
        {error && <Problem error={error} onRetry={() => void dryRun.refetch()} />}
        {!error && !hasTargets && <p className="muted text">{composeTexts.noTargets}</p>}
        {!error && data && hasTargets && (
          <>
            <p className="audience-total" aria-live="polite">
              <b>{count(total ?? 0)}</b> {composeTexts.devices(total ?? 0)}
            </p>
            <ul className="audience-bars">
              {platforms.map((name) => (
                <li key={name}>
                  <span>{platformNames[name]}</span>
                  <span className="bar">
                    <i style={{ width: `${total ? (data.devices[name] / total) * 100 : 0}%` }} />
                  </span>
                  <span className="right">{count(data.devices[name])}</span>
                </li>
              ))}
            </ul>
            {data.unmatched.length > 0 && (
              <p className="warn text">
                {composeTexts.unmatched}{" "}
                {data.unmatched.map((target) => (
                  <code key={target} className="mono break chip">
                    {target}
                  </code>
                ))}
              </p>
            )}
          </>
        )}
      </Panel>
      <Panel
        title={composeTexts.preview}
        actions={
          <SegmentedControl
            size="xs"
            aria-label={composeTexts.preview}
            value={platform}
            onChange={(value) => setPlatform(value as typeof platform)}
            data={platforms.map((name) => ({ value: name, label: platformNames[name] ?? name }))}
          />
        }
      >
        <LockScreen platform={platform} app={app} shown={payload === undefined ? typed : shownBy(platform, payload)} />
        {payload !== undefined && (
          <details className="payload">
            <summary>{composeTexts.payload}</summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard */}
            <pre className="code" tabIndex={0}>
              {JSON.stringify(payload, null, 2)}
            </pre>
          </details>
        )}
      </Panel>
    </div>
  );
};
