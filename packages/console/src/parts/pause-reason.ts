import type { FieldSpec } from "./field-values.ts";

export const pauseReason: FieldSpec = {
  label: "Why",
  hint: "For those who see that it is paused.",
  props: { maxLength: 200 },
};

export const whileResumed = "What waits is sent now. Cancel it first if it must not be sent.";
