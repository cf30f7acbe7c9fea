/** A row of the ledger that registry partitioned is the first generation; each row for what had to wait is one more. */
export const rootGeneration = 1;

/** Of the only page of a notification that has one. */
export const rootBatchId = (notificationId: string, n: number): string => `${notificationId}/0/${n}`;

/** `<notification>/<page>/<n>` of a root, `<notification>/<page>/<n>/<generation>` of what waited. */
export const childId = (batchId: string, generation: number): string =>
  `${batchId.split("/").slice(0, 3).join("/")}/${generation}`;

/** A batch id as one token of a subject. */
export const batchKey = (batchId: string): string => batchId.replaceAll("/", "-");

/** Where the wake-up of a stored batch or notification waits: one subject for each, so a second one replaces the first. */
export const scheduleSubject = (key: string, generation: number): string => `push.sched.v1.${key}.${generation}`;
