import type { NewRollout, Notification } from "@herald/client";
import { enteredOf, type FieldSpec, sentOf, type Values } from "../../parts/field-values.ts";
import { isJsonObject } from "../../parts/json.ts";

const rollout = { under: "Rollout", half: true } as const;
const percent = { as: "percent", props: { suffix: " %" } } as const;

/** How a notification is rolled out: the fields of the form by their paths in the API. */
export const rolloutFields = {
  "canary/share": {
    ...rollout,
    ...percent,
    label: "Begin with",
    hint: "Percent of the devices, chosen by chance. Empty: no canary.",
    placeholder: "1 %",
  },
  "canary/wait": {
    ...rollout,
    label: "Wait",
    hint: "How long the others wait, from 1m to 24h.",
    placeholder: "10m",
  },
  per_minute: {
    ...rollout,
    label: "Devices a minute",
    hint: "Empty: as fast as Herald can.",
    placeholder: "60000",
    as: "number",
    props: { allowNegative: false },
  },
  "stop_if/failed": {
    ...rollout,
    ...percent,
    label: "Pause when failures exceed",
    hint: "Percent of the devices with an outcome. Empty: never.",
    placeholder: "5 %",
  },
  "stop_if/unregistered": { ...rollout, label: "Count devices whose app is gone", as: "switch" },
} as const satisfies Readonly<Record<string, FieldSpec>>;

/** What the form shows of a rollout. */
export const enteredRollout = (given: Notification["rollout"]): Values => {
  const values = Object.entries(given ?? {}).flatMap(([part, value]) =>
    isJsonObject(value) ? Object.entries(value).map(([name, inner]) => [`${part}/${name}`, inner]) : [[part, value]],
  );
  return enteredOf(rolloutFields, Object.fromEntries(values));
};

/** The rollout that was entered; undefined: none. */
export const rolloutOf = (entered: Values): NewRollout | undefined => {
  const sent: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(sentOf(rolloutFields, entered))) {
    const [part = "", name] = path.split("/");
    if (name === undefined) sent[part] = value;
    else if (value !== false) sent[part] = { ...Object(sent[part]), [name]: value };
  }
  return Object.keys(sent).length > 0 ? sent : undefined;
};
