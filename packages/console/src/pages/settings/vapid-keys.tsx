import type { VapidKey } from "@herald/client";
import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { admin, useProject } from "../../api/clients.ts";
import { useRefresh } from "../../api/read.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { count, Status, Time } from "../../parts/format.tsx";
import { type Column, Rows } from "../../parts/list.tsx";
import { Copyable, Problem } from "../../parts/page.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

/** Rotation of the Web Push keys: stage the next key, make it current, and retire the earlier key once few subscriptions use it. */
export const VapidKeys = () => {
  const { id } = useProject();
  const refresh = useRefresh(id, "providers");
  const may = useHasRoleHere("admin");
  const { data, error } = useQuery({
    queryKey: [id, "providers", "webpush", "keys"],
    queryFn: () => admin.vapidKeys.list(id),
  });
  const staging = useMutation({ mutationFn: () => admin.vapidKeys.stage(id), onSuccess: refresh });
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
    {
      title: "",
      right: true,
      cell: (key) =>
        may && (
          <>
            {key.status === "next" && (
              <Confirm
                label="Make current"
                title="Make this key current?"
                verb="Make current"
                danger={false}
                act={() => admin.vapidKeys.makeCurrent(id, key.id)}
                onDone={refresh}
              >
                Browsers subscribe with it from now on. Earlier subscriptions keep working with their own key.
              </Confirm>
            )}
            {key.status === "earlier" && (
              <Confirm
                label="Retire"
                title="Retire this key?"
                verb="Retire"
                act={() => admin.vapidKeys.retire(id, key.id, { force: key.devices > 0 })}
                onDone={refresh}
              >
                {count(key.devices)} active subscriptions use it. They get no notifications until they subscribe again.
              </Confirm>
            )}
          </>
        ),
    },
  ];
  return (
    <Stack>
      <Group gap={8}>
        <Text component="strong" fw={700} className="grow">
          VAPID keys
        </Text>
        {may && !hasNext && (
          <Button size="compact-sm" variant="default" loading={staging.isPending} onClick={() => staging.mutate()}>
            Stage the next key
          </Button>
        )}
      </Group>
      {staging.error && <Problem error={staging.error} />}
      {data && <Rows rows={data} columns={columns} keyOf={({ id }) => id} label="VAPID keys" />}
    </Stack>
  );
};
