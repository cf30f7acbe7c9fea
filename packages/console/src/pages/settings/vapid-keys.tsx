import type { VapidKey } from "@herald/client";
import { Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { admin, useProject } from "../../api/clients.ts";
import { useAct } from "../../api/read.ts";
import { Copyable } from "../../parts/code.tsx";
import { Confirm, FormButton } from "../../parts/form.tsx";
import { count, Status, Time } from "../../parts/format.tsx";
import { type Column, Rows } from "../../parts/list.tsx";
import { Problem } from "../../parts/problem.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

/** Rotation of the Web Push keys: stage the next key, make it current, and retire the earlier key once few subscriptions use it. */
export const VapidKeys = () => {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  const { data, error } = useQuery({
    queryKey: [id, "providers", "webpush", "keys"],
    queryFn: () => admin.vapidKeys.list(id),
  });
  const staging = useAct(() => admin.vapidKeys.stage(id));
  if (error) return <Problem error={error} />;
  const hasNext = data?.some(({ status }) => status === "next");
  const columns: readonly Column<VapidKey>[] = [
    { title: "Status", cell: (key) => <Status value={key.status} /> },
    {
      title: "Public key",
      cell: (key) => (
        <Text component="div" maw={200}>
          <Copyable value={key.public_key} />
        </Text>
      ),
    },
    { title: "Subscriptions", right: true, cell: (key) => count(key.devices) },
    { title: "Since", right: true, wide: true, cell: (key) => <Time at={key.current_since ?? key.created_at} /> },
  ];
  return (
    <Stack>
      <Group gap={8}>
        <Text component="strong" fw={700} className="grow">
          VAPID keys
        </Text>
        {may && !hasNext && (
          <SmallButton loading={staging.isPending} onClick={() => staging.mutate()}>
            Stage the next key
          </SmallButton>
        )}
      </Group>
      {staging.error && <Problem error={staging.error} />}
      {data && (
        <Rows
          rows={data}
          columns={columns}
          buttons={(key) =>
            may && (
              <>
                {key.status === "next" && (
                  <FormButton
                    label="Make current"
                    title="Make this key current?"
                    verb="Make current"
                    act={() => admin.vapidKeys.makeCurrent(id, key.id)}
                    about="Browsers subscribe with it from now on. Earlier subscriptions keep working with their own key."
                  />
                )}
                {key.status === "earlier" && (
                  <Confirm
                    label="Retire"
                    title="Retire this key?"
                    verb="Retire"
                    act={() => admin.vapidKeys.retire(id, key.id, { force: key.devices > 0 })}
                    about={`${count(key.devices)} active subscriptions use it. They get no notifications until they subscribe again.`}
                  />
                )}
              </>
            )
          }
          label="VAPID keys"
        />
      )}
    </Stack>
  );
};
