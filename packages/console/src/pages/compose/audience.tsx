import type { DryRun } from "@herald/client";
import { SegmentedControl } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { count, platformNames } from "../../parts/format.tsx";
import { LockScreen, type Shown, shownBy } from "../../parts/lock-screen.tsx";
import { JsonCode, Panel, Problem } from "../../parts/page.tsx";

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
    <div className="stack sticky">
      <Panel title="Audience" actions={isFetching && <span className="muted small">counting…</span>}>
        {error && <Problem error={error} onRetry={() => void dryRun.refetch()} />}
        {!error && !hasTargets && <p className="muted text">Name at least one target to count its devices.</p>}
        {!error && data && hasTargets && (
          <>
            <p className="audience-total" aria-live="polite">
              <b>{count(total ?? 0)}</b> {(total ?? 0) === 1 ? "device" : "devices"}
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
                Matches no active device:{" "}
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
            <summary>The payload as it is sent</summary>
            <JsonCode value={payload} />
          </details>
        )}
      </Panel>
    </div>
  );
};
