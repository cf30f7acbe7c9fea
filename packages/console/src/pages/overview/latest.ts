import { useProject } from "../../api/clients.ts";
import { useRead } from "../../api/read.ts";

/** The latest notifications, newest first. */
export const useLatest = () => {
  const { id, herald } = useProject();
  return useRead(
    [id, "notifications", "latest"],
    async ({ signal }) => (await herald.notifications.list({ signal, perPage: 30, sort: "-created_at" }).page()).data,
    { everyMs: 2_500 },
  );
};
