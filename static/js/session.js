// A session that has ended: the password is asked for in the dialog, and then what was begun goes on.
// With a second factor the page of its own asks for it; what was typed is kept meanwhile.
let continuations = [];

export function watchSession() {
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr, requestConfig } = event.detail;
    if (xhr.status !== 401 || event.defaultPrevented) return;
    if (!offer(xhr.getResponseHeader("HX-Redirect"), () => repeat(elt, requestConfig))) return;
    event.preventDefault();
  });
  // The first answer has the session; only the next one has what proves that its forms are ours.
  document.addEventListener("portal:entered", () => {
    window.htmx.ajax("GET", "/login", { target: "#dialog-content", swap: "none" });
  });
  document.addEventListener("portal:signed-in", ({ detail }) => {
    // Another user must not go on with what the one before was doing.
    if (detail.person !== document.body.dataset.person) return location.reload();
    for (const field of document.querySelectorAll("input[name=csrf_token]")) {
      field.value = detail.token;
    }
    document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": detail.token }));
    const pending = continuations;
    continuations = [];
    document.getElementById("dialog-content").replaceChildren();
    document.getElementById("dialog").close();
    for (const resume of pending) resume();
  });
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    const field = target.querySelector?.("#sign-in-again [name=name]");
    if (field && !field.value) field.value = document.querySelector(".menu-name").textContent;
  });
}

// Returns whether a response says that the session has ended; then `resume` follows the sign-in.
export function offersSignIn(response, resume) {
  return response.status === 401 && offer(response.headers.get("HX-Redirect"), resume);
}

// Renews the page's session and its token for forms; `portal:signed-in` tells when that is done.
export function signInAgain() {
  offer("/login", () => {});
}

function offer(address, resume) {
  if (!address || !document.body.dataset.person) return false;
  continuations.push(resume);
  if (!document.getElementById("sign-in-again")) {
    window.htmx.ajax("GET", address, { target: "#dialog-content" });
  }
  return true;
}

// What is asked for by itself will be asked for again.
function repeat(elt, { triggeringEvent }) {
  if (!elt.isConnected) return;
  if (triggeringEvent?.type === "submit") elt.requestSubmit(triggeringEvent.submitter);
  else if (triggeringEvent?.type === "click") elt.click();
}
