import type { Delivery } from "@herald/client";

const lettersOf = (word: string): string => word.toLowerCase().replaceAll(/[^a-z]/g, "");

/** Why a device has no push: Herald's reason and the provider's words, each only if it says more than what stands beside it. */
export const reasonWords = ({
  status,
  reason,
  provider_reason: words,
}: Partial<Omit<Delivery, "status">> & { readonly status: string }) => {
  const own = reason === status ? undefined : reason;
  const isNew = words !== undefined && words !== "" && lettersOf(words) !== lettersOf(reason ?? "");
  return { own, said: isNew ? words : undefined };
};

type Props = { readonly row: Parameters<typeof reasonWords>[0] & { readonly button?: string | undefined } };

export const Reason = ({ row }: Props) => {
  const { own, said } = reasonWords(row);
  const also = [row.button && `button ${row.button}`, said].filter(Boolean).join(" ");
  if (own === undefined && also === "") return null;
  return (
    <span className="break">
      {own} {also && <span className="muted">{also}</span>}
    </span>
  );
};
