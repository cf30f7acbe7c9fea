import type { ReportedOpen } from "../domain/open.ts";

/** An open as it is stored. `published` is there, and false, until the bus has its event. */
export type OpenDocument = ReportedOpen & {
  /** `<notification>/<device>`: makes an open count once. */
  readonly _id: string;
  readonly published?: false;
};
