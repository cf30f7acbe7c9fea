import type { CompiledText, Texts } from "./texts.ts";

/** What texts show that differs between devices. `devicePaths`: paths of values below `device`, such as `metadata.plan`. */
export type PersonalShown = { readonly devicePaths: readonly string[]; readonly user: boolean };

/** Finds what the compiled texts of a notification show of its devices and their users. */
export const personalShown = ({
  title,
  body,
  link_to,
  image,
  data,
  localizations,
}: Texts<CompiledText>): PersonalShown => {
  const devicePaths = new Set<string>();
  let user = false;
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    // Only an expression that names a value has a path.
    if ("path" in node && Array.isArray(node.path)) {
      const [of, ...names] = node.path as string[];
      if (of === "device") devicePaths.add(names.join("."));
      user ||= of === "user";
      return;
    }
    for (const inner of Object.values(node)) visit(inner);
  };
  visit([title, body, link_to, image, data, localizations]);
  return { devicePaths: [...devicePaths], user };
};
