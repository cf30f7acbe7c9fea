import { enteredOf, type FieldsOf, sentOf, type Values } from "../../parts/field-values.ts";

/** As many as the API accepts. */
export const maxButtons = 3;

export const buttonFields: FieldsOf<Values> = {
  title: { label: "Button's title", half: true, props: { maxLength: 40 } },
  id: { label: "Button's id", half: true, props: { maxLength: 32 } },
  opens: { label: "Opens the app", as: "switch", half: true, props: { mt: { xs: 26 } } },
  link_to: {
    label: "Button's link",
    placeholder: "the message's",
    half: true,
    when: ({ opens }) => opens === true,
  },
};

export const newButton = (buttons: readonly Values[]): Values => {
  const free = Array.from({ length: maxButtons }, (_, at) => `button-${at + 1}`);
  const id = free.find((one) => buttons.every((button) => button.id !== one));
  return enteredOf(buttonFields, { id, opens: true });
};

/** The buttons of a notification. One that does not open the app has no link. */
export const buttonValues = {
  show: (buttons: unknown) =>
    ((buttons ?? []) as readonly Values[]).map((button) => enteredOf(buttonFields, { opens: true, ...button })),
  read: (buttons: readonly Values[]) => {
    const sent = buttons.map((button) => {
      const { opens, link_to, ...named } = sentOf(buttonFields, button);
      return { ...named, ...(opens === true ? link_to !== undefined && { link_to } : { opens }) };
    });
    return sent.length > 0 ? sent : undefined;
  },
};
