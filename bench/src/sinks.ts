/** Stands in for a provider; `control` counts what it accepted. */
export type Sink = { readonly url: string; readonly ca: string; readonly control: string };
