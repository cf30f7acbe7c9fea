/** Where a text is kept. */
export type Store = {
  readonly get: () => Promise<string | null>;
  readonly set: (value: string) => Promise<void>;
};

export type ReportKind = "received" | "dismissed" | "open";

/** A report that Herald has not accepted yet. */
export type Report = {
  readonly kind: ReportKind;
  readonly notification: string;
  readonly project: string;
  readonly token: string;
  readonly button?: string;
  /** ms since 1970. */
  readonly at: number;
};

/** Small enough for a key chain. */
export type Secrets = { readonly device?: string; readonly credential?: string };

export type State = {
  /** The push token that the platform issued last, and the one that was registered last, with its data and the time. */
  readonly pushToken?: string;
  readonly registered?: string;
  readonly registeredData?: string;
  readonly registeredAt?: number;
  /** The logged-in user, as Herald confirmed. */
  readonly user?: string | undefined;
  /** A log-out that Herald has not confirmed yet. */
  readonly loggingOut?: boolean;
  readonly topics: Readonly<Record<string, "subscribed" | "add" | "remove">>;
  readonly reports: readonly Report[];
  readonly failures: number;
  /** Not before this time: Herald's Retry-After. */
  readonly blockedUntil: number;
};

export const emptyState: State = { topics: {}, reports: [], failures: 0, blockedUntil: 0 };

export const reportAgeMs = 30 * 86_400_000;
const maxReports = 100;

/** With another report. The oldest of too many are dropped, and those that Herald would refuse by their age. */
export const withReport = (state: State, report: Report): State => {
  const same = ({ kind, token }: Report) => kind === report.kind && token === report.token;
  if (state.reports.some(same)) return state;
  const recent = state.reports.filter(({ at }) => report.at - at < reportAgeMs);
  return { ...state, reports: [...recent, report].slice(-maxReports) };
};

/** A text that is not JSON, or none, is as good as nothing stored. */
export const readJson = async <Value>(store: Store, otherwise: Value): Promise<Value> => {
  try {
    return { ...otherwise, ...JSON.parse((await store.get()) ?? "{}") };
  } catch {
    return otherwise;
  }
};
