import type { Herald, Recipients } from "@herald/client";
import { type QueryClient, useMutationState } from "@tanstack/react-query";
import { uploadTypeOf } from "./read-file.ts";

/** An upload of this page. It continues while the operator looks at other pages of the console. */
export type FileUpload = {
  readonly file: File;
  /** How many lines it has, if it was checked. */
  readonly lines: number | undefined;
  /** Stops it. Herald keeps the lines that it has, and the upload can be continued. */
  readonly ending: AbortController;
};

const keyOf = (notification: string) => ["recipients-upload", notification] as const;

const warn = (event: BeforeUnloadEvent) => event.preventDefault();

/** Uploads a file for a notification that waits for it, and continues a broken upload. The browser streams the file from the disk. */
export const startUpload = (
  queries: QueryClient,
  { notifications }: Pick<Herald, "notifications">,
  notification: string,
  upload: Omit<FileUpload, "ending">,
): void => {
  addEventListener("beforeunload", warn);
  const mutation = queries.getMutationCache().build<Recipients, Error, FileUpload, unknown>(queries, {
    mutationKey: keyOf(notification),
    mutationFn: ({ file, ending: { signal } }) =>
      notifications.uploadRecipients(notification, () => file, { signal, contentType: uploadTypeOf(file) }),
    gcTime: Number.POSITIVE_INFINITY,
  });
  mutation
    .execute({ ...upload, ending: new AbortController() })
    .catch(() => undefined) // the page shows the mutation's error
    .finally(() => {
      if (queries.isMutating({ mutationKey: ["recipients-upload"] }) === 0) removeEventListener("beforeunload", warn);
    });
};

/** The latest upload of this page for a notification. */
export const useFileUpload = (notification: string) =>
  useMutationState({
    filters: { mutationKey: keyOf(notification) },
    select: ({ state: { status, error, variables } }) => ({ status, error, upload: variables as FileUpload }),
  }).at(-1);
