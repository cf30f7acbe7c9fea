import { z } from "zod";
import type { PathProblem } from "../../named.ts";
import { boundedText } from "./presentation-fields.ts";

const maxButtons = 3;

export const ButtonId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,32}$/, "must be 1 to 32 letters, digits, `_` and `-`")
  .meta({ examples: ["track"] });
const ButtonTitle = boundedText(40);

/** The titles of buttons in another language, by their ids. */
export const ButtonTitles = z
  .record(ButtonId, ButtonTitle)
  .optional()
  .meta({ description: "Titles of `buttons` by their ids", examples: [{ track: "Verfolgen" }] });

/** Which share of the devices is asked for a receipt: all, none, or a number from 0 to 1. */
export const ReceiptShare = z.union([
  z.boolean(),
  z.number().min(0, "must be true, false or from 0 to 1").max(1, "must be true, false or from 0 to 1"),
]);

/** Fields of a notification that the kits of apps act on: receipts and buttons. */
export const receiptFields = <Link extends z.ZodType<string>>(linkTo: Link) => ({
  receipts: ReceiptShare.optional().meta({
    description:
      "The share of the devices that are asked to report that the push arrived: `true` or 1: all; absent: the project's `receipts`. Asks devices that registered the capability `receipts`. Android: only with the capability `draws` and `priority` `high`, because the app must draw the notification then: a phone on which the app was force-stopped, or that its vendor restricts, shows nothing of it, so asking may lower delivery there. Silent notifications are not asked",
    examples: [true],
  }),
  buttons: z
    .array(
      z.strictObject({
        id: ButtonId,
        title: ButtonTitle.meta({ examples: ["Track"] }),
        link_to: linkTo.optional(),
        opens: z
          .boolean()
          .optional()
          .meta({
            description: "`false`: the press is reported and the app stays closed; not with `link_to`",
            examples: [true],
          }),
        destructive: z
          .boolean()
          .optional()
          .meta({ description: "Shown as a warning where the platform can", examples: [false] }),
      }),
    )
    .min(1, "at least one button is required")
    .max(maxButtons, `at most ${maxButtons} are accepted`)
    .optional()
    .meta({
      description:
        "Up to three buttons, for devices that registered the capability `buttons`; Android: with `draws` and `priority` `high`. Not with `category` or `silent`. A press is an open with `button`",
      examples: [[{ id: "track", title: "Track", link_to: "/orders/42" }]],
    }),
});

type Fields = {
  readonly buttons?: readonly {
    readonly id: string;
    readonly link_to?: unknown;
    readonly opens?: boolean | undefined;
  }[];
  readonly category?: unknown;
  readonly silent?: unknown;
  readonly localizations?: Readonly<
    Record<string, { readonly buttons?: Readonly<Record<string, string>> | undefined }>
  >;
};

/** What is wrong with a whole notification's buttons. `isWhole`: no template adds to it. */
export const receiptProblems = (notification: unknown, isWhole = true): PathProblem[] => {
  const { buttons = [], category, silent, localizations = {} } = notification as Fields;
  const problems: PathProblem[] = [];
  const refuse = (path: PathProblem["path"], message: string) => problems.push({ path, message });
  const ids = new Set<string>();
  for (const [at, { id, link_to: link, opens }] of buttons.entries()) {
    if (ids.has(id)) refuse(["buttons", at, "id"], "is the id of another button");
    ids.add(id);
    if (opens === false && link !== undefined)
      refuse(["buttons", at, "link_to"], "cannot be combined with `opens: false`, which leaves the app closed");
  }
  if (buttons.length > 0 && category !== undefined)
    refuse(["buttons"], "cannot be combined with `category`, which has buttons of the app's own");
  if (buttons.length > 0 && silent === true) refuse(["buttons"], "cannot be combined with `silent`: nothing is shown");
  if (isWhole)
    for (const [locale, words] of Object.entries(localizations))
      for (const id of Object.keys(words.buttons ?? {}))
        if (!ids.has(id)) refuse(["localizations", locale, "buttons", id], "is not the id of one of `buttons`");
  return problems;
};
