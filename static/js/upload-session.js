// Whether files may still be sent in the name of who chose them. A sign-in in another tab makes a
// new token for forms, which this page does not have, and it may be another user's.

// {token} to send with, {reason} not to send, or neither where the server gives no page to tell.
export async function freshToken(form) {
  const page = await freshPage();
  if (!page) return {};
  const now = page.getElementById(form.id);
  if (!now) return { reason: "signedOut" };
  if (now.dataset.person !== form.dataset.person) return { reason: "otherPerson" };
  return { token: now.elements.csrf_token.value };
}

// All forms of a page have the same.
export function replaceToken(token) {
  for (const field of document.querySelectorAll("input[name=csrf_token]")) field.value = token;
  document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": token }));
}

async function freshPage() {
  try {
    const answer = await fetch(location.pathname);
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null;
  }
}
