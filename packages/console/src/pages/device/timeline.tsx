import type { DeviceNotification } from "@herald/client";
import { Button, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useProject } from "../../api/clients.ts";
import { usePollMs } from "../../api/live.tsx";
import { firstRows } from "../../api/rows.ts";
import { Status, Time } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Empty, Panel } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { deviceTexts } from "../../texts/devices.ts";
import { notificationTexts } from "../../texts/notifications.ts";

const t = deviceTexts;

/** What was sent to a device, newest first, and why it did not get something else. */
export const Timeline = ({ device }: { readonly device: string }) => {
  const { id, herald } = useProject();
  const navigate = useNavigate();
  const [limit, setLimit] = useState(20);
  const [asked, setAsked] = useState("");
  const query = useQuery({
    queryKey: [id, "deliveries", "device", device, limit],
    queryFn: ({ signal }) =>
      firstRows<DeviceNotification>(herald.devices.notifications(device, { signal, perPage: 20 }), limit),
    refetchInterval: usePollMs(),
  });
  const trace = (notification: string) => `/p/${id}/notifications/${notification}/devices/${device}`;
  const columns: readonly Column<DeviceNotification>[] = [
    {
      title: notificationTexts.message,
      cell: ({ notification }) => (
        <Link className="row-link" to={`/p/${id}/notifications/${notification.id}`}>
          <b className="cut" dir="auto">
            {notification.title ?? notification.body ?? notificationTexts.silent}
          </b>
        </Link>
      ),
    },
    { title: t.status, cell: (row) => <Status value={row.opened_at ? "opened" : row.status} /> },
    {
      title: notificationTexts.reason,
      wide: true,
      cell: (row) => (
        <span className="break">
          {row.reason} <span className="muted">{row.provider_reason}</span>
        </span>
      ),
    },
    { title: notificationTexts.at, right: true, cell: (row) => <Time at={row.opened_at ?? row.at} /> },
    {
      title: "",
      right: true,
      cell: (row) => (
        <Link className="link" to={trace(row.notification.id)}>
          {notificationTexts.trace}
        </Link>
      ),
    },
  ];
  const ask = (event: FormEvent) => {
    event.preventDefault();
    void navigate({ to: trace(asked.trim()) });
  };
  return (
    <>
      <Panel flush title={t.timeline}>
        <List
          query={query}
          columns={columns}
          keyOf={(row) => row.notification.id}
          label={t.timeline}
          empty={<Empty title={t.timelineEmpty} />}
        />
        {query.data?.more && (
          <div className="pager">
            <Button size="compact-sm" variant="default" onClick={() => setLimit(limit + 40)}>
              {texts.common.more}
            </Button>
          </div>
        )}
      </Panel>
      <Panel title={t.whyNot}>
        <form onSubmit={ask} className="find">
          <TextInput
            className="grow"
            aria-label={t.whyNotLabel}
            placeholder={t.whyNotLabel}
            value={asked}
            onChange={(event) => setAsked(event.currentTarget.value)}
          />
          <Button type="submit" variant="default" disabled={asked.trim() === ""}>
            {notificationTexts.trace}
          </Button>
        </form>
      </Panel>
    </>
  );
};
