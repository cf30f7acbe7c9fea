import type { Notification } from "@herald/client";
import { Progress, Stack, Text } from "@mantine/core";
import { useProject } from "../../api/clients.ts";
import { FormButton } from "../../parts/form.tsx";
import { count, percent, Time } from "../../parts/format.tsx";
import { Facts, Note, Panel } from "../../parts/page.tsx";
import { useMayWrite } from "../../session-context.tsx";
import { phaseOf } from "./rollout-words.ts";

type Rollout = NonNullable<Notification["rollout"]>;

/** A share that was set, which is not rounded as a measured one is. */
const shareOf = (share: number): string => `${Math.round(share * 1e6) / 1e4} %`;

const SlowDown = ({ notification, perMinute }: { readonly notification: string; readonly perMinute: number }) => {
  const { herald } = useProject();
  return (
    <FormButton<{ readonly per_minute: number }, unknown>
      label="Slow down"
      title="Slow down this rollout?"
      verb="Slow down"
      about="The speed can be lowered, but not raised again."
      fields={{
        per_minute: { label: "Devices a minute", as: "number", required: true, props: { allowNegative: false } },
      }}
      initial={{ per_minute: perMinute }}
      act={(rollout) => herald.notifications.update(notification, { rollout })}
    />
  );
};

type Props = { readonly notification: Notification; readonly rollout: Rollout; readonly ended: boolean };

/** How far a rollout is, and what it goes by. */
export const RolloutPanel = ({ notification: { id, paused }, rollout, ended }: Props) => {
  const mayWrite = useMayWrite();
  const { canary, per_minute: perMinute, stop_if: stopIf, phase, audience, released, rate, outcomes, failed } = rollout;
  const progress =
    audience === undefined
      ? `${count(released)} devices are released`
      : `${count(released)} of about ${count(audience)} devices are released`;
  const speed = [
    ...(rate === undefined || phase === "waiting" ? [] : [`${count(rate)} in the last part`]),
    ...(perMinute === undefined ? [] : [`at most ${count(perMinute)}`]),
  ];
  return (
    <Panel
      title="Rollout"
      actions={
        mayWrite &&
        !ended &&
        phase !== "done" &&
        perMinute !== undefined && <SlowDown notification={id} perMinute={perMinute} />
      }
    >
      <Stack gap="sm">
        {!ended && !paused && <Text c={phase === "held" ? "var(--warn)" : undefined}>{phaseOf(rollout)}</Text>}
        <div>
          {audience !== undefined && audience > 0 && (
            <Progress value={Math.min(1, released / audience) * 100} aria-label={progress} />
          )}
          <Note>{progress}</Note>
        </div>
        <Facts
          facts={{
            Canary: canary && `${shareOf(canary.share)} of the devices; the others wait ${canary.wait ?? "10m"}`,
            "Next part": !ended && !paused && rollout.next_at !== undefined && <Time at={rollout.next_at} />,
            "Devices a minute": speed.length > 0 && speed.join(", "),
            Failed: `${count(failed)} of ${count(outcomes)} with an outcome${outcomes > 0 ? `, ${percent(failed / outcomes)}` : ""}`,
            "Pauses above":
              stopIf &&
              `${shareOf(stopIf.failed)} failed${stopIf.unregistered ? ", with devices whose app is gone" : ""}`,
          }}
        />
      </Stack>
    </Panel>
  );
};
