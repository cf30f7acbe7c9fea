import { readFile, writeFile } from "node:fs/promises";

/** An account's block as `renderConsumerAccount` writes it: its end is the first brace at the beginning of a line. */
const blockOf = (account: string) => new RegExp(`^"${account}": \\{\\n(?:.*\\n)*?\\}\\n`, "m");

/** The text with this block in place of the account's former one, or without it. */
export const withAccount = (text: string, account: string, block: string | undefined): string => {
  const rest = text.replace(blockOf(account), "");
  if (block === undefined) return rest;
  return `${rest}${rest === "" || rest.endsWith("\n") ? "" : "\n"}${block}\n`;
};

/** Changes one account in the file that nats-server's configuration includes. */
export const putAccount = async (path: string, account: string, block: string | undefined): Promise<void> => {
  await writeFile(path, withAccount(await readFile(path, "utf8"), account, block));
};
