// Passkey forms: when one is submitted, ask the authenticator and submit its answer.
export function watchPasskeys() {
  const answered = new WeakSet();

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-passkey]");
    if (!form || answered.has(form)) return;
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    try {
      const credential = await ask(form);
      form.elements.credential.value = credential ? JSON.stringify(credential) : "";
    } catch (error) {
      show(form, error);
      button.disabled = false;
      return;
    }
    answered.add(form);
    form.submit();
  });

  // A page that comes back from the browser's memory starts over.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-passkey]")) {
      answered.delete(form);
      form.elements.credential.value = "";
      form.querySelector("[type=submit]").disabled = false;
    }
  });
}

async function ask(form) {
  const { passkey: kind, options: address, origin } = form.dataset;
  if (location.origin !== origin) throw new Problem("elsewhere");
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) throw new Problem("unsupported");
  const response = await fetch(address, {
    method: "POST",
    headers: { "X-CSRFToken": form.elements.csrf_token.value },
  });
  // Sent without an answer, the form leads to the page that says why, or asks for the password.
  if (!response.ok || response.redirected) return null;
  const options = await response.json();
  const credential =
    kind === "create"
      ? await navigator.credentials.create({
          publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
        })
      : await navigator.credentials.get({
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
        });
  return credential.toJSON();
}

class Problem extends Error {}

function show(form, error) {
  const known = { NotAllowedError: "cancelled", AbortError: "cancelled", InvalidStateError: "known" };
  const reason = error instanceof Problem ? error.message : (known[error.name] ?? "failed");
  const place = form.querySelector("[data-passkey-error]");
  place.textContent = form.querySelector("[data-passkey-words]").dataset[reason];
  place.hidden = false;
}
