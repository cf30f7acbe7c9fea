import type { Approval, Notification, Project } from "@herald/client";
import { UsageError } from "../failures.ts";
import { formatNumber } from "../terminal/text.ts";

type Author = Approval["sender"];

const nameOf = ({ id, name }: Author): string => name ?? id;

const reach = ({ devices, limit }: Approval): string =>
  `${devices === undefined ? "not known yet" : `about ${formatNumber(devices)} devices`}; more than ${formatNumber(limit)} need approval`;

/** Who decided, when and why; undefined: nobody has. */
const decisionInWords = ({ status, by, at, reason }: Approval): string | undefined =>
  status === "proposed"
    ? undefined
    : [`${status}${by ? ` by ${nameOf(by)}` : ""} at ${at}`, reason !== undefined && `because: ${reason}`]
        .filter(Boolean)
        .join(", ");

export const isProposed = ({ status }: Pick<Notification, "status">): boolean => status === "proposed";

/** An approval as names and values. */
export const approvalEntries = ({
  status,
  approval,
}: Pick<Notification, "status" | "approval">): [name: string, value: string | undefined][] =>
  approval === undefined
    ? []
    : [
        ["approval", isProposed({ status }) ? `waits until ${approval.expires_at}` : decisionInWords(approval)],
        ["sender", nameOf(approval.sender)],
        ["estimate", reach(approval)],
      ];

/** What a proposed send waits for, and for whom. */
export const proposalInWords = ({ id, approval }: Pick<Notification, "id" | "approval">): string =>
  [
    `It waits for approval${approval ? ` until ${approval.expires_at}` : ""}, by an admin or an operator with \`approve\` in the grant`,
    "who neither sent it nor created its sender's token:",
    `\`herald notification approve ${id}\` or \`herald notification reject ${id}\`.`,
  ].join(" ");

/** `10000`, or `off`. */
export const parseApproval = (text: string | undefined): Project["approval"] | null => {
  if (text === undefined || text === "off") return text && null;
  if (/^\d{1,9}$/.test(text)) return { devices: Number(text) };
  throw new UsageError(`--approval ${text}: must be a number of devices such as 10000, or off.`);
};
