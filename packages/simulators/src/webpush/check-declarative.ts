import { z } from "zod";
import { parseStrictJson } from "../strict-json.ts";

const text = z.string().optional();

/** A declarative push message as WebKit parses it. It drops messages that do not fit. */
const DeclarativeMessage = z.looseObject({
  web_push: z.literal(8030),
  app_badge: z.int().min(0).optional(),
  notification: z.looseObject({
    title: z.string().min(1),
    navigate: z.url(),
    body: text,
    tag: text,
    lang: text,
    dir: z.enum(["auto", "ltr", "rtl"]).optional(),
    icon: z.url().optional(),
    silent: z.boolean().optional(),
    mutable: z.boolean().optional(),
    app_badge: z.union([z.int().min(0), z.string().regex(/^\d+$/)]).optional(),
  }),
});

/** Why a browser would drop the payload of a push with the type `application/notification+json`; undefined if it would show it. */
export function declarativeProblem(payload: string): string | undefined {
  let message: unknown;
  try {
    message = parseStrictJson(payload);
  } catch (error) {
    return `payload: not JSON, which application/notification+json promises: ${(error as Error).message}`;
  }
  const [issue] = DeclarativeMessage.safeParse(message).error?.issues ?? [];
  return issue && `payload: ${issue.path.join(".") || "message"}: ${issue.message}`;
}
