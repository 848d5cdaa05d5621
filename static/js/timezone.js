// The server writes dates in the reader's zone, which only the browser knows.
export function rememberTimezone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone) return;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `portal_timezone=${zone}; path=/; max-age=31536000; SameSite=Lax${secure}`;
}
