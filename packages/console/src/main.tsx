import "./mantine.css";
import "./styles/base.css";
import "./styles/components.css";
import { MantineProvider } from "@mantine/core";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { isSignedOut, retryAfterMs } from "./api/problems.ts";
import { connection } from "./api/session.ts";
import { router } from "./router.tsx";
import { SessionGate } from "./session-context.tsx";
import { colorSchemeManager, theme } from "./theme.ts";

const onError = (error: unknown) => {
  if (isSignedOut(error)) connection.dispatchEvent(new Event("ended"));
};

const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    // Whether the browser is online says nothing about the gateway.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      // Temporary errors are retried by polling, so that the page shows the error meanwhile.
      retry: false,
      refetchInterval: ({ state: { error } }) => error !== null && retryAfterMs(error),
    },
  },
});

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="auto" colorSchemeManager={colorSchemeManager}>
        <QueryClientProvider client={queries}>
          <SessionGate>
            <RouterProvider router={router} />
          </SessionGate>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
