import { generate } from "selfsigned";

/** A self-signed certificate for localhost and its key, as PEM. */
export async function localhostCertificate(
  commonName = "localhost",
): Promise<{ certificate: string; privateKey: string }> {
  const { cert, private: privateKey } = await generate([{ name: "commonName", value: commonName }], {
    keyType: "ec",
    curve: "P-256",
    extensions: [
      {
        name: "subjectAltName",
        altNames: [
          { type: 2 as const, value: "localhost" },
          { type: 7 as const, ip: "127.0.0.1" },
        ],
      },
    ],
  });
  return { certificate: cert, privateKey };
}
