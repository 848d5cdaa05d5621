// Menus are <details>; this adds what people expect: Escape and a click elsewhere close them.
export function watchMenus() {
  const openMenus = () => document.querySelectorAll("details[data-menu][open]");
  document.addEventListener("click", (event) => {
    const isClosed = event.target.closest("[data-close-menu]");
    for (const menu of openMenus()) {
      if (isClosed || !menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    // On phones the tree of folders and the list of conversations are sheets, open while it is the target of the address.
    if (document.querySelector(".folder-tree:target, .chat-list:target")) location.hash = "main";
    for (const menu of openMenus()) {
      const hadFocus = menu.contains(document.activeElement);
      menu.open = false;
      if (hadFocus) menu.querySelector("summary")?.focus();
    }
  });
}
