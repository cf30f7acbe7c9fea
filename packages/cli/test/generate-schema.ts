import * as contracts from "@herald/contracts";
import { z } from "zod";

/** Where a secret comes from. Secrets themselves do not stand in the file. */
const Source = z
  .strictObject({
    file: z.string().min(1).optional().meta({ description: "A file, from the folder of this one" }),
    env: z.string().min(1).optional().meta({ description: "An environment variable" }),
  })
  .meta({
    id: "Source",
    description: "Where the text stands: in a file or a variable",
    minProperties: 1,
    maxProperties: 1,
  });

const Written = z
  .strictObject({
    write: z.string().min(1).meta({
      description: "A file, from the folder of this one, that only its owner can read. It is never overwritten",
    }),
  })
  .meta({
    id: "Written",
    description: "Where Herald's secret is written. If the file is missing, a new secret replaces the old one",
  });

const { project: change } = contracts.ChangeProject.shape;
const { token } = contracts.CreateToken.shape;
const { webhook } = contracts.ChangeWebhook.shape;

/** The fields of settings that come from files or variables. */
const sources: Readonly<Record<string, z.ZodType>> = {
  private_key: Source,
  certificate: Source,
  ca: Source,
  service_account: Source,
};
const fromSources = ({ shape }: z.ZodObject) =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(shape).map(([name, field]): [string, z.ZodType] => {
        const source = sources[name];
        if (source === undefined) return [name, field as z.ZodType];
        return [name, z.safeParse(field as z.ZodType, undefined).success ? source.optional() : source];
      }),
    ),
  );
const [byKey, byCertificate] = contracts.ApnsSettings.options;
const environment = { environment: byKey.shape.environment.optional().meta({ description: "Absent: production" }) };

const ProjectFile = z
  .strictObject({
    herald: z.literal(1).meta({ description: "The version of this form" }),
    project: z.strictObject({ ...change.shape, key: contracts.ProjectKey }),
    limits: contracts.ChangeLimits.shape.limits.optional(),
    kinds: z
      .array(z.strictObject({ kind: contracts.Kind, ...contracts.PutKind.shape.kind.shape }))
      .max(contracts.kindLimits.perProject)
      .optional(),
    providers: z
      .strictObject({
        apns: z
          .union([fromSources(byKey).extend(environment), fromSources(byCertificate).extend(environment)])
          .optional(),
        fcm: fromSources(contracts.FcmSettings).optional(),
        webpush: fromSources(contracts.WebPushSettings).optional(),
      })
      .optional(),
    tokens: z
      .array(token.extend({ secret: Written.optional() }))
      .max(100)
      .optional(),
    webhooks: z
      .array(
        z.strictObject({
          ...webhook.shape,
          url: contracts.CreateWebhook.shape.webhook.shape.url,
          secret: Written.optional(),
        }),
      )
      .max(100)
      .optional(),
  })
  .meta({
    title: "A project of Herald in a file",
    description:
      "`herald apply` brings a project to what this file says. A section that is absent is left as it is; so is a field of the project, a limit, a token or a webhook that is not named.",
  });

/** The JSON Schema of the file that `herald apply` reads: `src/apply/schema.json`. */
export const generateSchema = (): string =>
  `${JSON.stringify(z.toJSONSchema(ProjectFile, { io: "input", unrepresentable: "any" }), null, 2)}\n`;
