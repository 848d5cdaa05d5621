// Buttons that copy a secret which is shown only once.
export function watchCopying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const field = button.parentElement.querySelector("input");
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      // Without HTTPS there is no clipboard: the words are selected, ready for Ctrl-C.
      field?.select();
      return;
    }
    button.querySelector("span").textContent = button.dataset.copied;
  });
}
