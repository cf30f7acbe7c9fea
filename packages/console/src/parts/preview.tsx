import { SegmentedControl } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { JsonCode } from "./code.tsx";
import { Folded } from "./folded.tsx";
import { platformNames } from "./format.tsx";
import { LockScreen, type Shown, shownBy } from "./lock-screen.tsx";
import { Panel } from "./page.tsx";

const platforms = ["ios", "android", "web"] as const;
type Platform = (typeof platforms)[number];

type Props = {
  /** Undefined for a platform without a payload. */
  readonly payloadOf: (platform: Platform) => unknown;
  /** The typed content, shown for platforms without a payload. */
  readonly typed: Shown;
  readonly app: string;
  /** What else to say of the chosen platform's payload. */
  readonly children?: (platform: Platform) => ReactNode;
};

/** A notification as each platform shows it, and its payload. */
export const Preview = ({ payloadOf, typed, app, children }: Props) => {
  const [platform, setPlatform] = useState<Platform>("ios");
  const payload = payloadOf(platform);
  return (
    <Panel
      title="Preview"
      actions={
        <SegmentedControl
          size="xs"
          aria-label="Preview"
          value={platform}
          onChange={(value) => setPlatform(value as Platform)}
          data={platforms.map((name) => ({ value: name, label: platformNames[name] ?? name }))}
        />
      }
    >
      <LockScreen platform={platform} app={app} shown={payload === undefined ? typed : shownBy(platform, payload)} />
      {children?.(platform)}
      {payload !== undefined && (
        <Folded title="Payload">
          <JsonCode value={payload} />
        </Folded>
      )}
    </Panel>
  );
};
