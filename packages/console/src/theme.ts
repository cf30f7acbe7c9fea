import { createTheme, localStorageColorSchemeManager, type MantineColorsTuple } from "@mantine/core";

const herald: MantineColorsTuple = [
  "#e8f7f4",
  "#d3ece7",
  "#a6d9cf",
  "#75c5b5",
  "#4db4a0",
  "#33a992",
  "#1d9f88",
  "#0a7c6c",
  "#09705f",
  "#025c4e",
];

const dark: MantineColorsTuple = [
  "#dbe2e2",
  "#b4bfbf",
  "#98a5a6",
  "#6b787a",
  "#3b4648",
  "#2b3436",
  "#20282a",
  "#171d1f",
  "#111617",
  "#0b0f10",
];

export const theme = createTheme({
  primaryColor: "herald",
  primaryShade: 7,
  colors: { herald, dark },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.25rem" },
  defaultRadius: "sm",
  radius: { sm: "6px", md: "10px" },
  cursorType: "pointer",
  respectReducedMotion: true,
  headings: { fontWeight: "620" },
  components: {
    Button: { defaultProps: { size: "sm" } },
    Alert: { defaultProps: { variant: "outline", color: "var(--bad)", bg: "var(--panel)" } },
    Badge: { defaultProps: { variant: "outline", tt: "none", fw: 560, fz: "xs", lts: 0, px: 8, miw: "max-content" } },
    NavLink: { defaultProps: { bdrs: "sm", px: 10, py: 6, mb: 1 } },
    Paper: { defaultProps: { bg: "var(--panel)", bd: "1px solid var(--line)" } },
    Pill: { defaultProps: { h: 24 } },
    Text: { defaultProps: { size: "sm" } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    InputClearButton: { defaultProps: { size: 24 } },
    // The description of a field stands below the field.
    InputWrapper: { defaultProps: { inputWrapperOrder: ["label", "input", "error", "description"] } },
    Modal: { defaultProps: { centered: true, closeButtonProps: { "aria-label": "Close" } } },
    Drawer: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    Tooltip: { defaultProps: { openDelay: 250, withArrow: true } },
    Table: { defaultProps: { verticalSpacing: 7, horizontalSpacing: "sm" } },
  },
});

export const colorSchemeManager = localStorageColorSchemeManager({ key: "herald-color-scheme" });
