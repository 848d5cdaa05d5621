// Buttons that copy a secret which is shown only once, or an answer with its sources.
export function watchCopying() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copyFrom ?? "");
    try {
      await navigator.clipboard.writeText(button.dataset.copy ?? source.innerText);
    } catch {
      // Without HTTPS there is no clipboard: the words are selected, ready for Ctrl-C.
      if (source) getSelection().selectAllChildren(source);
      else button.parentElement.querySelector("input")?.select();
      return;
    }
    button.querySelector("span").textContent = button.dataset.copied;
  });
}
