// The bell refreshes itself while the page is visible; its menu opens when it is fetched,
// and closes with a second click.
export function watchNotifications() {
  const menu = document.getElementById("notification-menu");
  if (!menu) return;

  // A hidden page shows no notes: another tab may.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && isOwn(event.detail.elt)) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) window.htmx.trigger("#notification-bell", "portal:seen");
  });
  // Notes on their way reach the page only while the form that asked for them is on it.
  for (const name of ["htmx:beforeSwap", "htmx:oobBeforeSwap"]) {
    document.addEventListener(name, ({ detail }) => {
      const isAsking = detail.target.id === "notification-bell" && detail.target.querySelector("form.htmx-request");
      if (isAsking) detail.shouldSwap = false;
    });
  }
  // An ended session does not leave a page on which the user is writing.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    if (xhr.status !== 401 || !isOwn(elt)) return;
    event.preventDefault();
    const bell = document.getElementById("notification-bell");
    // What HTMX does not know of asks for nothing more.
    bell?.replaceWith(bell.cloneNode(true));
  });
  watchMenu(menu);
}

function isOwn(elt) {
  return Boolean(elt.closest?.("#notification-bell"));
}

function watchMenu(menu) {
  const link = document.getElementById("notification-link");
  link.setAttribute("aria-expanded", "false");
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === menu) menu.showPopover();
  });
  watchClosing(menu, link);
  menu.addEventListener("toggle", (event) => {
    const isOpen = event.newState === "open";
    link.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) menu.replaceChildren();
  });
}

// The browser closes the menu as the bell is pressed, so the click that follows would find it closed
// and open it again. The keyboard presses nothing: its clicks have no detail.
function watchClosing(menu, link) {
  const isOpen = () => menu.matches(":popover-open");
  let wasOpen = false;
  link.addEventListener("pointerdown", () => {
    wasOpen = isOpen();
  });
  const onClick = (event) => {
    if (!(event.detail ? wasOpen : isOpen())) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (isOpen()) menu.hidePopover();
  };
  // Before HTMX, which listens on the link as well.
  link.addEventListener("click", onClick, { capture: true });
}
