import type { Notification } from "@herald/client";
import { Alert, Group, Paper, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { admin, useProject } from "../../api/clients.ts";
import { useProjectName } from "../../api/projects.ts";
import type { FieldSpec } from "../../parts/field-values.ts";
import { Confirm, FormButton } from "../../parts/form.tsx";
import { count, notificationName, Time } from "../../parts/format.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Facts, Note } from "../../parts/page.tsx";
import { useMayWrite, useSession } from "../../session-context.tsx";
import { byPlatform } from "../compose/message-facts.tsx";
import { draftOf, dryRunOf } from "../compose/notification-of.ts";
import { sendTimeOf } from "./waves.tsx";

type Approval = NonNullable<Notification["approval"]>;
type Props = { readonly notification: Notification; readonly approval: Approval };
type Decision = { readonly reason?: string };

const reason: FieldSpec = {
  label: "Why",
  hint: "For those who see the decision.",
  props: { maxLength: 200 },
};

/** Whether the operator may decide on sends of the page's project. Which of them, the server knows: not their own. */
const useMayDecide = (): boolean => {
  const { session } = useSession();
  const { id } = useProject();
  return session.role === "admin" || session.projects.some((grant) => grant.id === id && grant.approve);
};

/** The platforms of the devices that a proposal would reach now; undefined until they are counted, and for who may not send. */
const usePlatforms = ({ notification, approval: { devices } }: Props): string | undefined => {
  const { id, herald } = useProject();
  const mayWrite = useMayWrite();
  const asked = notification.recipients ? undefined : dryRunOf(draftOf(notification));
  const { data } = useQuery({
    queryKey: [id, "dry-run", notification.id, devices],
    queryFn: ({ signal }) => herald.notifications.dryRun(asked ?? {}, { signal }),
    enabled: mayWrite && asked !== undefined,
    staleTime: 30_000,
  });
  return data && byPlatform(data.devices);
};

const reachOf = ({ notification: { recipients }, approval: { devices } }: Props): string => {
  if (devices !== undefined) return `about ${count(devices)} devices`;
  return `an unknown number of devices${recipients?.upload ? " until its file is complete" : ""}`;
};

const Decide = (props: Props) => {
  const { notification } = props;
  const { id } = useProject();
  const project = useProjectName();
  const { id: ntf } = notification;
  const time = sendTimeOf(notification);
  const when = time === undefined ? "It is sent at once." : `It is sent at ${time}, or at once if that has passed.`;
  return (
    <Group gap={8}>
      <FormButton<Decision, unknown>
        label="Approve"
        button={{ variant: "filled" }}
        title="Approve this notification?"
        verb="Approve"
        fields={{ reason }}
        act={(decision) => admin.notifications.approve(id, ntf, decision)}
        about={`“${notificationName(notification)}” of ${project} reaches ${reachOf(props)}. ${when}`}
      />
      <Confirm<Decision, unknown>
        label="Reject"
        title="Reject this notification?"
        verb="Reject"
        fields={{ reason }}
        act={(decision) => admin.notifications.reject(id, ntf, decision)}
        about="It is cancelled, and reaches no device."
      />
    </Group>
  );
};

const Proposed = (props: Props) => {
  const { limit, sender, expires_at: expiresAt } = props.approval;
  const mayDecide = useMayDecide();
  const platforms = usePlatforms(props);
  return (
    <Alert icon={<Icon name="warning" />} color="var(--warn)" title="This notification waits for approval">
      <Stack gap="sm">
        <Facts
          facts={{
            Reaches: (
              <>
                <b>{reachOf(props)}</b> {platforms && <Note>{platforms}</Note>}
              </>
            ),
            "Needs approval": `above ${count(limit)} devices`,
            "Sent by": <bdi>{sender.name ?? sender.id}</bdi>,
            Expires: <Time at={expiresAt} />,
          }}
        />
        {mayDecide ? <Decide {...props} /> : "An admin of Herald, or an operator who may approve here, decides."}
      </Stack>
    </Alert>
  );
};

const decisions: Readonly<Record<string, string>> = {
  approved: "Approved.",
  rejected: "Rejected.",
  expired: "Cancelled, because nobody approved it in time.",
};

/** What a notification waits for until a second person decides on it; after that who decided, when and why. */
export const ApprovalBanner = (props: Props) => {
  const { status, by, at, reason: why } = props.approval;
  if (props.notification.status === "proposed") return <Proposed {...props} />;
  // Without a time nobody decided: it was cancelled before.
  if (at === undefined) return null;
  return (
    <Paper p="sm" role="note" className="break">
      <b>{decisions[status] ?? status}</b> <Time at={at} />
      {by && (
        <>
          {" by "}
          <bdi>{by.name ?? by.id}</bdi>
        </>
      )}
      {why && (
        <>
          : <bdi>{why}</bdi>
        </>
      )}
    </Paper>
  );
};
