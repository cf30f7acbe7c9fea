import { useQuery } from "@tanstack/react-query";
import { useProject } from "../../api/clients.ts";

/** The latest notifications, newest first. */
export const useLatest = () => {
  const { id, herald } = useProject();
  return useQuery({
    queryKey: [id, "notifications", "latest"],
    queryFn: async ({ signal }) => {
      const { data } = await herald.notifications.list({ signal, perPage: 30, sort: "-created_at" }).page();
      return data;
    },
    refetchInterval: 2_500,
  });
};
