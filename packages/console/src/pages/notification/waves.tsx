import type { Notification } from "@herald/client";
import { count, exactTime, Status } from "../../parts/format.tsx";
import { type Column, Rows } from "../../parts/list.tsx";
import { Note, Panel } from "../../parts/page.tsx";

type Wave = NonNullable<Notification["schedule"]>[number];

/** More names of zones would only make a row long. */
const shownZones = 3;

const columns: readonly Column<Wave>[] = [
  { title: "Begins", cell: ({ at }) => exactTime(at) },
  { title: "Status", cell: ({ status }) => <Status value={status} /> },
  {
    title: "Time zones",
    cell: ({ time_zones: zones }) => (
      <span className="break" title={zones.join(", ")}>
        {zones.slice(0, shownZones).join(", ")}
        {zones.length > shownZones && ` and ${zones.length - shownZones} more`}
      </span>
    ),
  },
  { title: "Devices", right: true, cell: ({ devices }) => (devices === undefined ? "" : count(devices)) },
];

/** The waves of a notification, with their progress. */
export const Waves = ({ schedule }: { readonly schedule: readonly Wave[] }) => {
  const done = schedule.filter(({ status }) => status === "sent" || status === "skipped").length;
  return (
    <Panel title="Waves" flush>
      <Note p="md">
        {done} of {schedule.length} waves are addressed. Times are in your time zone.
      </Note>
      <Rows rows={schedule} columns={columns} keyOf={({ at, status }) => `${at}/${status}`} label="Waves" />
    </Panel>
  );
};

/** When a notification is sent, in words; undefined: at once. */
export const sendTimeOf = ({ send_at: at, time_zone: zone }: Notification): string | undefined => {
  if (at === undefined || zone === undefined) return exactTime(at);
  const shown = at.replace("T", " ");
  return zone === "device" ? `${shown} on each device's clock` : `${shown} in ${zone}`;
};
