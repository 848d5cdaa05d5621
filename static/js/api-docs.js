// The API reference: Swagger UI over the portal's own OpenAPI document.
const root = document.getElementById("api-reference");
const page = document.documentElement;
const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
const { theme } = page.dataset;

page.classList.toggle("dark-mode", theme === "dark" || (theme === "auto" && isDark));
window.SwaggerUIBundle({
  domNode: root,
  url: root.dataset.url,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  filter: true,
});
// Swagger UI leaves these fields without a name, and draws them after it says that it is complete.
const NAMES = { "#servers": "Server", ".operation-filter-input": "Filter by tag" };
new MutationObserver(() => {
  for (const [field, name] of Object.entries(NAMES)) root.querySelector(field)?.setAttribute("aria-label", name);
}).observe(root, { childList: true, subtree: true });
